"""Speaker clustering: the speech of a whole recording is assigned to voices by the encoder's embeddings.

A head tells when somebody speaks, and how many at once; over minutes the encoder's embeddings tell better than its
slots whose voice it is. So stretches in which one voice speaks are clustered (agglomerative, average linkage of cosine
distances), the way EEND-vector clustering joins its blocks (Kinoshita et al., arXiv 2105.09040), and each frame's
speech goes to the voices that it and its neighbours are nearest to.
"""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from sortformer.config.clustering import ClusteringConfig

__all__ = [
    "alone",
    "by_turns",
    "by_voice",
    "in_finer_frames",
    "mean_direction",
    "shared_out",
    "staying",
    "unit_rows",
]

_STRETCH_FRAMES = (6, 20)  # shortest and longest
# One voice speaks in a frame whose likeliest slot exceeds the first, while the sum of all slots is below the second.
_SPEECH, _ALONE = 0.3, 1.3
# A slot above _SURE in so many frames in which one voice speaks has a speaker of its own. Where there are several,
# their voices are kept apart even if they are alike, but not if they are nearer than _SAME.
_SURE, _SURE_FRAMES, _SAME = 0.8, 25, 0.3
# Voices that take turns are two from this share of the threshold on: one person who moves, or speaks up, sounds
# different from then on, or for a while, but does not alternate between the two.
_ALTERNATING = 0.8
_ASTRAY = 0.1  # share of the speech of who speaks less; more of it in the wrong place is a turn (see `by_turns`)
_TURNS_SHARE = 0.15  # of all speech; a group that has less of it may be odd stretches of another voice
_SAMPLE_FRAMES = 4  # a stretch counts once for each so many of its frames, so that longer ones count for more
_MOST_SAMPLES = 3000  # each is compared with every other one
_SHORTEST_VOICE_FRAMES = 8  # what speaks less, or less than this share of the speech, is no speaker
_LEAST_SHARE = 0.03
_ROUNDS = 3  # of means and nearest means, as in k-means
_SHARPNESS = 5.0  # by which the cosines of a frame, times how much is said in it, become log-likelihoods
_STAYS = 0.9  # how likely the next frame is of the same voice
_DOUBLINGS = 5  # a frame's voice is told by the 2^5 = 32 frames on each side


def by_voice(
    probs: np.ndarray,
    emb: np.ndarray,
    config: ClusteringConfig,
    fewest: int = 1,
    most: int | None = None,
    stretch_frames: tuple[int, int] = _STRETCH_FRAMES,
    alternating: float = _ALTERNATING,
) -> np.ndarray:
    """Return probabilities (T, K) of the voices that are heard, in order of arrival.

    The sum of a frame's probabilities, how many speak, stays that of the slots (up to K). Where next to nobody speaks
    alone there is nothing to cluster, and the slots are returned.

    Args:
        probs: (T, S) probabilities of the model's slots, in frames of 80 ms, in the order in which they were heard.
        emb: (T, D) the encoder's embeddings of the same frames.
        fewest: at least so many voices, as far as there are stretches of speech: the tree of voices is cut further down
            until there are. So it is where so many slots have, for sure, a speaker each.
        most: no more than so many voices (None: as the config says).
        stretch_frames: shortest and longest stretch of speech that is clustered as one.
        alternating: voices that take turns are two from this share of the threshold on.
    """
    unit = unit_rows(emb)
    spoken = probs.sum(axis=1)
    single = alone(probs)
    stretches = _stretches(single, *stretch_frames)
    size = np.array([len(stretch) for stretch in stretches])
    if size.sum() < _SHORTEST_VOICE_FRAMES:
        return probs
    points = unit_rows(np.stack([unit[stretch].mean(axis=0) for stretch in stretches]))
    count = -(-size // _SAMPLE_FRAMES)
    samples = np.repeat(np.arange(len(stretches)), count)
    samples = samples[:: -(-len(samples) // _MOST_SAMPLES)]  # of hours some are enough: the means are of all
    points, size = points[samples], (size / count).astype(np.float32)[samples]
    most = config.max_speakers if most is None else most
    sure = int(np.count_nonzero(((probs > _SURE) & single[:, None]).sum(axis=0) >= _SURE_FRAMES))
    distances = config.threshold, alternating * config.threshold
    labels = _labels(points, size, distances, fewest, most, sure)
    means = np.stack(
        [(points * size[:, None])[labels == label].sum(axis=0) for label in np.unique(labels[labels >= 0])]
    )
    for _ in range(_ROUNDS):
        share = _shares(unit, unit_rows(means), spoken)
        means = (np.square(share) * single[:, None]).T @ unit
    share = _shares(unit, unit_rows(means), spoken)
    return share[:, np.argsort(_arrivals(share), kind="stable")].astype(probs.dtype)


def alone(probs: np.ndarray) -> np.ndarray:
    """Return in which frames (T,) of probabilities (T, S) one voice speaks, and no other."""
    return (probs > _SPEECH).any(axis=1) & (probs.sum(axis=1) < _ALONE)


def _labels(
    points: np.ndarray, size: np.ndarray, distances: tuple[float, float], fewest: int, most: int, sure: int
) -> np.ndarray:
    """Which voice each stretch is of, -1 for none that speaks enough.

    ``distances`` are those above which voices are two, and above which those that take turns are.
    """
    tree = linkage(points, "average", metric="cosine")
    least = max(_SHORTEST_VOICE_FRAMES, _LEAST_SHARE * size.sum())
    wanted = max(fewest, min(sure, most, 1 + int(np.count_nonzero(tree[:, 2] > _SAME))))
    labels = _joined(points, size, fcluster(tree, distances[1], "distance") - 1, distances[0])
    if np.count_nonzero(np.bincount(labels, weights=size) >= least) < wanted:
        # Who has a slot for sure is there, however little is said.
        labels, least = _cut(tree, size, wanted, least if wanted == fewest else 0.0)
    mass = np.bincount(labels, weights=size)
    spoken = np.flatnonzero(mass >= least)
    chosen = spoken[np.argsort(-mass[spoken], kind="stable")][:most] if len(spoken) else [int(mass.argmax())]
    return np.where(np.isin(labels, chosen), labels, -1)


def _cut(tree: np.ndarray, size: np.ndarray, wanted: int, least: float) -> tuple[np.ndarray, float]:
    """Cut a tree into the fewest groups of which so many speak enough, which is ``least`` of the stretches' ``size``.

    What is nearest to no voice leaves the tree first, in groups of an odd stretch each, which are no voices. Where no
    cut has so many, half as much is enough, and so on. Return labels (N,), and what was enough.
    """
    pairs, wanted = tree[:, :2].astype(int), min(wanted, len(size))
    mass = np.concatenate([size, np.zeros(len(pairs))])
    for group, pair in enumerate(pairs, start=len(size)):
        mass[group] = mass[pair].sum()
    while True:
        enough = (mass >= least).astype(int)
        more = enough[pairs].sum(axis=1) - enough[len(size) :]  # when a group is taken apart
        heard = np.cumsum([enough[-1], *more[::-1]])  # of one group, two, ...
        if heard.max() >= wanted:
            return fcluster(tree, 1 + int(np.argmax(heard >= wanted)), "maxclust") - 1, least
        least /= 2


def _joined(points: np.ndarray, size: np.ndarray, labels: np.ndarray, threshold: float) -> np.ndarray:
    """Join groups of stretches within the threshold that do not take turns, the nearest first; return labels (N,)."""
    while True:
        groups = np.unique(labels)
        means = np.stack([points[labels == group].mean(axis=0) for group in groups])
        pairs = np.stack(np.triu_indices(len(groups), 1), axis=1)
        apart = (1 - means @ means.T)[pairs[:, 0], pairs[:, 1]]  # on average over the stretches of both
        for pair in np.argsort(apart, kind="stable")[: np.count_nonzero(apart <= threshold)]:
            one, other = groups[pairs[pair]]
            said = size * (labels == one), size * (labels == other)
            if min(said[0].sum(), said[1].sum()) < _TURNS_SHARE * size.sum() or not by_turns(*said):
                labels = np.where(labels == other, one, labels)
                break
        else:
            return np.unique(labels, return_inverse=True)[1]


def by_turns(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two voices take turns: neither says all in one stretch of time in which the other is silent.

    In the best such stretch of either voice, what the other one says is astray, and so is what the first says outside
    of it. Some of that does not make a turn.

    ``one`` and ``other`` (N,) are how much they say, moment by moment.
    """
    # The best stretch is that with the greatest sum of what one says less what the other says.
    sums = np.concatenate([[0.0], np.cumsum(one - other)])
    astray = min(
        one.sum() - (sums - np.minimum.accumulate(sums)).max(), other.sum() - (np.maximum.accumulate(sums) - sums).max()
    )
    return bool(astray > _ASTRAY * min(one.sum(), other.sum()))


def _stretches(single: np.ndarray, shortest: int, longest: int) -> list[np.ndarray]:
    """The frames (T,) in which one voice speaks, in pieces of bounded length."""
    frames = np.flatnonzero(single)
    runs = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
    pieces = [run[start : start + longest] for run in runs for start in range(0, len(run), longest)]
    return [piece for piece in pieces if len(piece) >= shortest]


def _shares(unit: np.ndarray, means: np.ndarray, spoken: np.ndarray) -> np.ndarray:
    """Share the speech (T,) of each frame out among voices by how near they are, none above 1."""
    said = np.minimum(spoken, 1.0)[:, None]
    return shared_out(staying(np.exp(_SHARPNESS * said * (unit @ means.T - 1))), spoken)


def staying(near: np.ndarray) -> np.ndarray:
    """Return how likely each voice is in each frame (T, K), 1 for the likeliest, where voices stay for a while.

    ``near`` are likelihoods of the frame by itself. Forwards and backwards through a hidden Markov model whose state is
    the voice (Rabiner, "A tutorial on hidden Markov models", 1989, eq. 27).
    """
    likely = _up_to(near) * _up_to(near[::-1])[::-1] / near
    return likely / likely.max(axis=1, keepdims=True)


def _up_to(near: np.ndarray) -> np.ndarray:
    """Return how likely each voice is in each frame (T, K), by the frame and those before it."""
    voices = near.shape[1]
    moves = np.full((voices, voices), (1 - _STAYS) / max(1, voices - 1), dtype=near.dtype)
    np.fill_diagonal(moves, _STAYS)
    # From voice i before a stretch of frames to voice j at its end; stretches of twice the length, from two of them.
    path = moves * near[:, None, :]
    for length in 2 ** np.arange(_DOUBLINGS):
        path[length:] = path[:-length] @ path[length:]
        path /= path.sum(axis=(1, 2), keepdims=True)
    return path.sum(axis=1)


def shared_out(weight: np.ndarray, spoken: np.ndarray) -> np.ndarray:
    """Share the speech (T,) of each frame out by weights (T, K), none above 1; what exceeds K is left out."""
    wanted = np.minimum(spoken, weight.shape[1])[:, None]
    share = np.zeros_like(weight)
    # What does not fit into the nearest voice goes to the next ones: in K rounds at most all of it is placed.
    for _ in range(weight.shape[1]):
        open_weight = np.where(share < 1, np.maximum(weight, 1e-6), 0.0)
        rest = wanted - share.sum(axis=1, keepdims=True)
        share = np.minimum(1.0, share + rest * open_weight / np.maximum(open_weight.sum(axis=1, keepdims=True), 1e-12))
    return share


def in_finer_frames(share: np.ndarray, probs: np.ndarray, finer: int) -> np.ndarray:
    """Share the speech of frames (U, S), ``finer`` of which are one of ``share`` (T, K), out as that has it: (U, K)."""
    if finer == 1:
        return share
    found, heard = np.zeros((len(probs), share.shape[1]), share.dtype), share.any(axis=0)
    weight = np.repeat(share[:, heard], finer, axis=0)[: len(probs)]
    found[:, heard] = shared_out(weight, probs.sum(axis=1))
    return found


def _arrivals(share: np.ndarray) -> np.ndarray:
    """First frame in which each voice is likelier than not, T for none."""
    active = share > 0.5
    return np.where(active.any(axis=0), active.argmax(axis=0), len(share))


def mean_direction(rows: np.ndarray) -> np.ndarray:
    """Return the direction (D,), of length one, in which rows (n, D) lie on average, whatever their lengths."""
    return unit_rows(unit_rows(rows).mean(axis=0))


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (..., D) brought to length one, at least in float32; what is next to nothing stays so."""
    dtype = np.result_type(rows, np.float32)
    length = np.sqrt(np.einsum("...d,...d->...", rows, rows, dtype=dtype))  # which makes no copy of hours of them
    return rows / np.maximum(length, 1e-6)[..., None]

"""Speaker clustering: the speech of a whole recording is assigned to voices by the encoder's embeddings.

The head's slots show when somebody speaks, and how many at once; over minutes the encoder's embeddings identify the
speaker better than the slots. So stretches with a single voice are clustered (agglomerative, average linkage of cosine
distances), as EEND-vector clustering does with its blocks (Kinoshita et al., arXiv 2105.09040), and the speech of each
frame goes to the voices nearest to it and its neighbours (``shares``).
"""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from sortformer.config.clustering import ClusteringConfig
from sortformer.shares import shared_out, shares

__all__ = ["alone", "by_turns", "by_voice", "mean_direction", "unit_rows"]

_STRETCH_FRAMES = (6, 20)  # shortest and longest
# One voice speaks in a frame whose likeliest slot exceeds the first, while the sum of all slots is below the second.
_SPEECH, _ALONE = 0.3, 1.3
# A slot above _SURE in so many frames with a single voice is surely a speaker. Several such speakers stay apart even if
# their voices are similar, unless these are nearer than _SAME.
_SURE, _SURE_FRAMES, _SAME = 0.8, 25, 0.3
# Voices that take turns count as two from this share of the threshold on: a person who moves, or raises the voice,
# sounds different from then on, or for a while, but does not alternate.
_ALTERNATING = 0.8
_ASTRAY = 0.1  # share of the speech of the less active voice; with more of it astray they take turns (see `by_turns`)
_TURNS_SHARE = 0.15  # of all speech; a cluster with less may be outliers of another voice
_SAMPLE_FRAMES = 4  # frames of a stretch per sample, so that longer stretches weigh more
_MOST_SAMPLES = 3000  # all pairs are compared
_SHORTEST_VOICE_FRAMES = 8  # with less, or less than _LEAST_SHARE of all speech, it is no speaker
_LEAST_SHARE = 0.03
_LEAST_PART = 0.12  # of an equal share, where so many voices are wanted that this is less
_ROUNDS = 3  # of assignments and means, as in k-means
_EQUAL = 0.01  # means this near are those of one voice


def by_voice(
    probs: np.ndarray,
    emb: np.ndarray,
    config: ClusteringConfig,
    fewest: int = 1,
    most: int | None = None,
    stretch_frames: tuple[int, int] = _STRETCH_FRAMES,
    alternating: float = _ALTERNATING,
    known: np.ndarray | None = None,
) -> np.ndarray:
    """Return probabilities (T, K) of the voices, in order of arrival.

    The sum of a frame's probabilities, how many speak, stays that of the slots (up to K). With too few frames of a
    single voice there is nothing to cluster, and the slots are returned, or the ``most`` with the most speech.

    Args:
        probs: (T, S) probabilities of the model's slots, in frames of 80 ms, in chronological order.
        emb: (T, D) the encoder's embeddings of the same frames.
        fewest: the least number of voices, 1 or more, as far as there are stretches of speech that differ: the cluster
            tree is cut lower until there are enough. The number of slots that surely have a speaker has the same
            effect.
        most: the greatest number of voices (None: as in the config).
        stretch_frames: shortest and longest stretch of speech that is clustered.
        alternating: voices that take turns count as two from this share of the threshold on.
        known: (P, D) mean directions of the voices of so many people, none of whom is another.
    """
    unit = unit_rows(emb)
    spoken = probs.sum(axis=1)
    single = alone(probs)
    stretches = _stretches(single, *stretch_frames)
    size = np.array([len(stretch) for stretch in stretches])
    most = config.max_speakers if most is None else most
    if size.sum() < _SHORTEST_VOICE_FRAMES:
        kept = np.sort(np.argsort(-probs.sum(axis=0), kind="stable")[:most])
        slots = probs[:, kept]
        return shared_out(slots, spoken) if np.delete(probs, kept, axis=1).any() else slots
    starts = np.array([stretch[0] for stretch in stretches])
    # Sums from each start to its end, and from there to the next start: a copy of all stretches would be large.
    borders = np.stack([starts, starts + size], axis=1).ravel()
    points = unit_rows(np.add.reduceat(unit, borders[borders < len(unit)], axis=0)[::2])
    count = -(-size // _SAMPLE_FRAMES)
    samples = np.repeat(np.arange(len(stretches)), count)
    samples = samples[:: -(-len(samples) // _MOST_SAMPLES)]  # for hours, a subset is enough: means use all frames
    points, size = points[samples], (size / count).astype(np.float32)[samples]
    sure = int(np.count_nonzero(((probs > _SURE) & single[:, None]).sum(axis=0) >= _SURE_FRAMES))
    distances = config.threshold, alternating * config.threshold
    labels = _labels(points, size, distances, fewest, most, sure, known)
    means = np.stack(
        [(points * size[:, None])[labels == label].sum(axis=0) for label in np.unique(labels[labels >= 0])]
    )
    for _ in range(_ROUNDS):
        share = shares(unit, unit_rows(means), spoken)
        means = (np.square(share) * single[:, None]).T @ unit
    share = shares(unit, _distinct(unit_rows(means)), spoken)
    return share[:, np.argsort(_arrivals(share), kind="stable")].astype(probs.dtype)


def _distinct(means: np.ndarray) -> np.ndarray:
    """Return means (K, D) without those that equal an earlier one.

    The rounds make two clusters of one voice equal, such as one of stretches across the borders of its turns. They
    would get half of its speech each, and neither of them enough to be heard.
    """
    equal = 1 - means @ means.T < _EQUAL
    return means[~np.triu(equal, 1).any(axis=0)]


def alone(probs: np.ndarray) -> np.ndarray:
    """Return the frames (T,) of probabilities (T, S) in which exactly one voice speaks, as booleans."""
    return (probs > _SPEECH).any(axis=1) & (probs.sum(axis=1) < _ALONE)


def _labels(
    points: np.ndarray,
    size: np.ndarray,
    distances: tuple[float, float],
    fewest: int,
    most: int,
    sure: int,
    known: np.ndarray | None,
) -> np.ndarray:
    """Return the cluster of each stretch, -1 if it has too little speech.

    ``distances`` are the thresholds above which voices count as two: in general, and if they take turns.
    """
    # A product of matrices gives cosine distances several times as fast as `pdist` does; rounded, they may be negative.
    tree = linkage(squareform(np.maximum(0, 1 - points @ points.T), checks=False), "average")
    least = max(_SHORTEST_VOICE_FRAMES, min(_LEAST_SHARE, _LEAST_PART / fewest) * size.sum())
    wanted = max(fewest, min(sure, most, 1 + int(np.count_nonzero(tree[:, 2] > _SAME))))
    labels = _joined(points, size, fcluster(tree, distances[1], "distance"), distances[0])
    if np.count_nonzero(np.bincount(labels, weights=size) >= least) < wanted:
        # A speaker who surely has a slot counts, however little speech there is.
        labels, least = _cut(tree, size, wanted, least if wanted == fewest else 0.0)
    if known is not None:
        labels = _one_each(points, labels, known)
    mass = np.bincount(labels, weights=size)
    spoken = np.flatnonzero(mass >= least)
    chosen = spoken[np.argsort(-mass[spoken], kind="stable")][:most] if len(spoken) else [mass.argmax()]
    return np.where(np.isin(labels, chosen), labels, -1)


def _cut(tree: np.ndarray, size: np.ndarray, wanted: int, least: float) -> tuple[np.ndarray, float]:
    """Cut a tree into the fewest clusters of which ``wanted`` have ``least`` speech, the sum of their ``size``.

    Outliers split off first, into clusters of single stretches, which are no voices. If no cut has so many, ``least``
    is halved until one has. Return labels (N,), and the final ``least``.
    """
    pairs, wanted = tree[:, :2].astype(int), min(wanted, len(size))
    mass = np.concatenate([size, np.zeros(len(pairs))])
    for group, pair in enumerate(pairs, start=len(size)):
        mass[group] = mass[pair].sum()
    while True:
        enough = (mass >= least).astype(int)
        more = enough[pairs].sum(axis=1) - enough[len(size) :]  # when a cluster is split
        heard = np.cumsum([enough[-1], *more[::-1]])  # with one cluster, two, ...
        if heard.max() >= wanted:
            return fcluster(tree, 1 + int(np.argmax(heard >= wanted)), "maxclust") - 1, least
        least /= 2


def _joined(points: np.ndarray, size: np.ndarray, labels: np.ndarray, threshold: float) -> np.ndarray:
    """Merge clusters within the threshold that do not take turns, the nearest first; return labels (N,)."""
    while True:
        groups = np.unique(labels)
        means = np.stack([points[labels == group].mean(axis=0) for group in groups])
        pairs = np.stack(np.triu_indices(len(groups), 1), axis=1)
        apart = (1 - means @ means.T)[pairs[:, 0], pairs[:, 1]]  # mean over all pairs of stretches
        for pair in np.argsort(apart, kind="stable")[: np.count_nonzero(apart <= threshold)]:
            one, other = groups[pairs[pair]]
            said = size * (labels == one), size * (labels == other)
            if min(said[0].sum(), said[1].sum()) < _TURNS_SHARE * size.sum() or not by_turns(*said):
                labels = np.where(labels == other, one, labels)
                break
        else:
            return np.unique(labels, return_inverse=True)[1]


def _one_each(points: np.ndarray, labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Divide each cluster that is the nearest one of several known voices (P, D) among them; return labels (N,)."""
    means = unit_rows(np.stack([points[labels == group].mean(axis=0) for group in range(labels.max() + 1)]))
    nearest = (known @ means.T).argmax(axis=1)
    parts = labels.copy()
    for group in np.unique(nearest):
        here, people = labels == group, np.flatnonzero(nearest == group)
        whose = (points[here] @ known[people].T).argmax(axis=1)
        parts[here] = np.where(whose > 0, parts.max() + whose, group)
    return parts


def by_turns(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two voices take turns: neither speaks only in one interval in which the other is silent.

    For the best such interval of either voice, the other's speech inside it and the voice's own speech outside of it
    are astray. A small amount of that does not make a turn.

    ``one`` and ``other`` (N,) are how much they speak at each point in time.
    """
    # The best interval is the one with the greatest sum of one voice's speech minus the other's.
    sums = np.concatenate([[0.0], np.cumsum(one - other)])
    astray = min(
        one.sum() - (sums - np.minimum.accumulate(sums)).max(), other.sum() - (np.maximum.accumulate(sums) - sums).max()
    )
    return bool(astray > _ASTRAY * min(one.sum(), other.sum()))


def _stretches(single: np.ndarray, shortest: int, longest: int) -> list[np.ndarray]:
    """Return the frames (T,) with a single voice in stretches of bounded length."""
    frames = np.flatnonzero(single)
    runs = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
    pieces = [run[start : start + longest] for run in runs for start in range(0, len(run), longest)]
    return [piece for piece in pieces if len(piece) >= shortest]


def _arrivals(share: np.ndarray) -> np.ndarray:
    """Return the first frame in which each voice exceeds 1/2, T if none does."""
    active = share > 0.5
    return np.where(active.any(axis=0), active.argmax(axis=0), len(share))


def mean_direction(rows: np.ndarray) -> np.ndarray:
    """Return the mean direction (D,) of rows (n, D), a unit vector; their lengths do not matter."""
    return unit_rows(unit_rows(rows).mean(axis=0))


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (..., D) scaled to unit length, at least in float32; those near zero stay so."""
    dtype = np.result_type(rows, np.float32)
    length = np.sqrt(np.einsum("...d,...d->...", rows, rows, dtype=dtype))  # unlike norm, without a copy of all rows
    return rows / np.maximum(length, 1e-6)[..., None]

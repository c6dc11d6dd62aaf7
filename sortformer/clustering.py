"""Who, by voice: the frames of a whole recording grouped by the encoder's embeddings.

A head tells when somebody speaks, and how many at once; over minutes the encoder's embeddings tell better than its
slots whose voice it is. So stretches in which one voice speaks are clustered (agglomerative, average linkage of cosine
distances), the way EEND-vector clustering joins its blocks (Kinoshita et al., arXiv 2105.09040), and each frame's
speech goes to the voices that it is nearest to.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.ndimage import uniform_filter1d

from sortformer.config.clustering import ClusteringConfig

__all__ = ["SHORTEST_VOICE_FRAMES", "Stretches", "alone", "by_voice", "groups", "shares", "unit_rows"]

SHORTEST_VOICE_FRAMES = 8
"""What speaks less is no speaker."""

_SPEECH = 0.3  # least probability of the likeliest slot, and most speakers expected, where one voice speaks
_ALONE = 1.3
# A slot that is so sure, alone, for so long is a speaker: voices that are alike stay two, if not nearer than this.
_SURE, _SURE_FRAMES, _SAME = 0.8, 25, 0.3
_MOST_STRETCHES = 3000  # each is compared with every other one
_LEAST_SHARE = 0.03  # of the speech: what speaks less is no speaker either
_ROUNDS = 3  # of means and nearest means, as in k-means
_SHARPNESS = 20.0  # of the choice among cosines
_SMOOTH_FRAMES = 5


def by_voice(
    probs: np.ndarray, emb: np.ndarray, config: ClusteringConfig, fewest: int = 1, most: int | None = None
) -> np.ndarray:
    """Return probabilities (T, K) of the voices that are heard, in order of arrival.

    The sum of a frame's probabilities, how many speak, stays that of the slots (up to K). Where next to nobody speaks
    alone there is nothing to cluster, and the slots are returned.

    Args:
        probs: (T, S) probabilities of the model's slots, in frames of 80 ms.
        emb: (T, D) the encoder's embeddings of the same frames.
        fewest: split the likeliest voices until there are so many, as far as there are stretches of speech; also where
            so many slots are sure of themselves.
        most: no more than so many voices (None: as the config says).
    """
    unit = unit_rows(emb.astype(np.float32))
    spoken, single = probs.sum(axis=1), alone(probs)
    stretches = Stretches.of(single, unit)
    if len(stretches.size) < 3:
        return probs
    most = config.max_speakers if most is None else most
    sure = int(np.count_nonzero(((probs > _SURE) & single[:, None]).sum(axis=0) >= _SURE_FRAMES))
    labels = groups(stretches.points, stretches.size, config.threshold, fewest, most, sure)
    weighted = stretches.points * stretches.size[:, None]
    means = np.stack([weighted[labels == label].sum(axis=0) for label in np.unique(labels[labels >= 0])])
    for _ in range(_ROUNDS):
        share = shares(unit, unit_rows(means), spoken)
        means = (np.square(share) * single[:, None]).T @ unit
    share = shares(unit, unit_rows(means), spoken)
    return share[:, np.argsort(_arrivals(share), kind="stable")].astype(probs.dtype)


def alone(probs: np.ndarray) -> np.ndarray:
    """Return in which frames of probabilities (T, S) one voice speaks, (T,) bool."""
    return (probs.max(axis=1, initial=0.0) > _SPEECH) & (probs.sum(axis=1) < _ALONE)


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Pieces of speech of one voice each, of bounded length."""

    points: np.ndarray  # (N, D) mean embeddings, of length 1
    size: np.ndarray  # (N,) frames

    SHORTEST: ClassVar[int] = 3
    LONGEST: ClassVar[int] = 8

    @classmethod
    def of(cls, single: np.ndarray, unit: np.ndarray) -> "Stretches":
        """Cut the frames (T,) in which one voice speaks, of unit embeddings (T, D)."""
        frames = np.flatnonzero(single)
        runs = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
        pieces = [run[start : start + cls.LONGEST] for run in runs for start in range(0, len(run), cls.LONGEST)]
        pieces = [piece for piece in pieces if len(piece) >= cls.SHORTEST]
        pieces = pieces[:: max(1, -(-len(pieces) // _MOST_STRETCHES))]  # of hours some are enough: means are of all
        means = [unit[piece].mean(axis=0) for piece in pieces]
        return cls(unit_rows(np.array(means).reshape(-1, unit.shape[1])), np.array([len(piece) for piece in pieces]))


def groups(
    points: np.ndarray, size: np.ndarray, threshold: float, fewest: int = 1, most: int | None = None, sure: int = 0
) -> np.ndarray:
    """Return which voice each stretch is of, (N,), -1 for none that speaks enough.

    Args:
        points: (N, D) mean embeddings of the stretches, of length 1.
        size: (N,) their frames.
        threshold: mean cosine distance above which two groups are two voices.
        fewest: split the likeliest voices until there are so many, as far as there are stretches.
        most: no more than so many voices, those that speak most.
        sure: so many slots are sure that they are voices of their own.
    """
    if len(points) < 2:
        return np.zeros(len(points), np.int64)
    tree = linkage(points, "average", metric="cosine")
    least = max(SHORTEST_VOICE_FRAMES, _LEAST_SHARE * size.sum())
    bound = len(points) if most is None else most
    wanted = max(fewest, min(sure, bound, 1 + int(np.count_nonzero(tree[:, 2] > _SAME))))
    labels = fcluster(tree, threshold, "distance") - 1
    if np.count_nonzero(np.bincount(labels, weights=size) >= least) < wanted:
        labels, least = fcluster(tree, wanted, "maxclust") - 1, 0.0
    mass = np.bincount(labels, weights=size)
    spoken = np.flatnonzero(mass >= least)
    chosen = spoken[np.argsort(-mass[spoken], kind="stable")][:bound] if len(spoken) else [int(mass.argmax())]
    return np.where(np.isin(labels, chosen), labels, -1)


def shares(unit: np.ndarray, means: np.ndarray, spoken: np.ndarray) -> np.ndarray:
    """Share the speech (T,) of each frame out among voices by how near they are, none above 1.

    Args:
        unit: (T, D) embeddings of length 1.
        means: (K, D) those of the voices.
        spoken: (T,) how many speak, as a sum of probabilities.

    Returns:
        (T, K) probabilities, whose sum is ``spoken`` as far as there are voices.
    """
    near = _SHARPNESS * uniform_filter1d(unit @ means.T, _SMOOTH_FRAMES, axis=0)
    weight = np.exp(near - near.max(axis=1, keepdims=True))
    wanted = np.minimum(spoken, means.shape[0])[:, None]
    share = np.zeros_like(weight)
    # What does not fit into the nearest voice goes to the next ones: in K rounds at most all of it is placed.
    for _ in range(means.shape[0]):
        open_weight = np.where(share < 1, np.maximum(weight, 1e-6), 0.0)
        rest = wanted - share.sum(axis=1, keepdims=True)
        share = np.minimum(1.0, share + rest * open_weight / np.maximum(open_weight.sum(axis=1, keepdims=True), 1e-12))
    return share


def _arrivals(share: np.ndarray) -> np.ndarray:
    """First frame in which each voice is likelier than not, T for none."""
    active = share > 0.5
    return np.where(active.any(axis=0), active.argmax(axis=0), len(share))


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows (N, D) of length 1."""
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-6)

"""Who, by voice, in a stream: its speech goes to the voices that it has heard, or to new ones.

What a stream remembers (speaker cache and FIFO) are frames whose speakers were decided when they were heard. Their
embeddings, made anew in each step, are how the voices known so far sound now. So slots stay with their voices, whatever
the head would call them in this step: online clustering, in which the memory of the stream is the clusters.
"""

import numpy as np
import torch
from torch import Tensor

from sortformer.clustering import SHORTEST_VOICE_FRAMES, Stretches, alone, groups, shares, unit_rows
from sortformer.config.clustering import ClusteringConfig

__all__ = ["by_known_voice", "rows_by_voice"]


def rows_by_voice(
    probs: Tensor, emb: Tensor, before: list[Tensor], length: Tensor, config: ClusteringConfig, most: int
) -> Tensor:
    """Return :func:`by_known_voice` of each row of a batch.

    Args:
        probs: (B, T, S), at a multiple of the embeddings' rate.
        emb: (B, T', D) with T = T' times a whole number.
        before: for each row (t, S), at the rate of the embeddings.
        length: (B,) embeddings that count; what follows stays as it is.
    """
    finer = probs.shape[1] // emb.shape[1]
    found = probs.clone()
    for row, frames in enumerate(length.tolist()):
        said = probs[row, : frames * finer]
        voices = by_known_voice(
            _array(said, 1), _array(emb[row, :frames], finer), _array(before[row], finer), config, most
        )
        found[row, : frames * finer] = torch.from_numpy(voices).to(found)
    return found


def by_known_voice(
    probs: np.ndarray, emb: np.ndarray, before: np.ndarray, config: ClusteringConfig, most: int
) -> np.ndarray:
    """Return probabilities (T, S) in which each column stays with the voice that it had.

    The sum of a frame's probabilities, how many speak, is kept (up to the number of voices). Stretches of speech that
    are further than ``config.threshold`` from all known voices are clustered, and become voices of the first free
    columns, in order of arrival, once there is enough of one. Until then they go to the nearest voice.

    Args:
        probs: (T, S) probabilities of the model's slots, in whatever order.
        emb: (T, D) the encoder's embeddings.
        before: (t, S) what was decided of the first t frames, t <= T; a column of which nothing is left is free.
        most: only the first so many columns may be taken.
    """
    unit, spoken = unit_rows(emb), probs.sum(axis=1)
    single = alone(probs)
    past = np.square(before) * (alone(before) & single[: len(before)])[:, None]
    sums = past.T @ unit[: len(before)]
    known = past.sum(axis=0) >= Stretches.SHORTEST
    free = np.flatnonzero(~known)
    free = free[free < most]
    stretches = Stretches.of(single, unit)
    strange = np.ones(len(stretches.size), bool)
    if known.any():
        strange = (1 - stretches.points @ unit_rows(sums[known]).T).min(axis=1, initial=2.0) > config.threshold
    if len(free) and stretches.size[strange].sum() >= SHORTEST_VOICE_FRAMES:
        points, size = stretches.points[strange], stretches.size[strange]
        labels = groups(points, size, config.threshold, most=len(free))
        for column, label in zip(free, dict.fromkeys(labels[labels >= 0].tolist())):  # noqa: B905 (columns may be left)
            sums[column] = (points * size[:, None])[labels == label].sum(axis=0)
            known[column] = True
    if not known.any():
        return probs
    found = np.zeros_like(probs)
    found[:, known] = shares(unit, unit_rows(sums[known]), spoken)
    return found


def _array(rows: Tensor, times: int) -> np.ndarray:
    return rows.float().repeat_interleave(times, dim=0).cpu().numpy()

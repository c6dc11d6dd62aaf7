"""Who, by voice, in a stream: its speech goes to the voices that it has heard, or to new ones.

What a stream remembers (speaker cache and FIFO) are frames whose speakers were decided when they were heard. In each
step they are clustered anew, together with the new frames, as if they were a recording, and each voice that is found
keeps the column that most of its past has. So one voice that was taken for two becomes one again, and two that were
taken for one are told apart as soon as there is enough of them.
"""

from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from sortformer.clustering import by_voice
from sortformer.config.clustering import ClusteringConfig

__all__ = ["by_known_voice", "rows_by_voice"]

_LEAST_COMMON = 0.5  # frames in which a voice and a column both speak, if the voice is to keep the column
_LEAST_SHARE = 0.2  # of a voice's past in a column, if it has a claim to it
# Shorter than in whole recordings, because the frames of a speaker cache were picked, and neighbours may be moments
# apart; and the mean of fewer frames lies further from its voice, by about so much.
_STRETCH_FRAMES = (3, 8)
_SCATTER = 1.1


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
    """Return probabilities (T, S) of voices, in which each column stays with the voice that it had.

    The sum of a frame's probabilities, how many speak, is kept (up to the number of voices). Who is new gets the first
    column that nobody has had.

    Args:
        probs: (T, S) probabilities of the model's slots, in whatever order.
        emb: (T, D) the encoder's embeddings.
        before: (t, S) what was decided of the first t frames, t <= T.
        config: how voices are told apart.
        most: only the first so many columns may be taken.
    """
    apart = replace(config, threshold=min(_SCATTER * config.threshold, 1.99))
    # With too little speech to cluster these are the slots.
    voices = by_voice(probs, emb, apart, most=most, stretch_frames=_STRETCH_FRAMES, in_order=False)[:, :most]
    common = np.square(voices[: len(before)]).T @ np.square(before[:, :most])
    # Of several columns that a voice has had, the first: which of them has most may change from step to step.
    claims = common >= np.maximum(_LEAST_COMMON, _LEAST_SHARE * common.sum(axis=1, keepdims=True))
    worth = common + claims * len(common) * (1 + common.max(initial=0.0)) * np.arange(most, 0, -1)
    pairs = zip(*linear_sum_assignment(worth, maximize=True), strict=True)
    column = {voice: slot for voice, slot in pairs if common[voice, slot] >= _LEAST_COMMON}
    had = set(np.flatnonzero(before.any(axis=0)).tolist())
    free = sorted(set(range(most)) - set(column.values()), key=lambda slot: (slot in had, slot))
    new = [voice for voice in range(voices.shape[1]) if voice not in column]  # in order of arrival
    column.update(zip(new, free, strict=False))
    found = np.zeros_like(probs)
    for voice, slot in column.items():
        found[:, slot] = voices[:, voice]
    return found


def _array(rows: Tensor, times: int) -> np.ndarray:
    return rows.float().repeat_interleave(times, dim=0).cpu().numpy()

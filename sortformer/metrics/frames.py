"""Diarization errors counted in frames, a cheap metric for training."""

from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from sortformer.errors import InputError
from sortformer.metrics.counts import DerCounts

__all__ = ["frame_der"]


def frame_der(active: np.ndarray, target: np.ndarray, order: Literal["best", "sorted"] = "best") -> DerCounts:
    """Count the diarization errors of one recording, in frames times speakers.

    Args:
        active: (T, S) probabilities, with a threshold of one half, or booleans.
        target: (T, K) activity of the reference speakers, 0 or 1; K may differ from S. Remove padding from both first.
        order: "best" maps slots to speakers with the least error (Hungarian algorithm); "sorted" maps slot k to speaker
            k, so that a wrong order of arrival counts as confusion; but speakers with the same first frame may take
            each other's slots, as in the sort loss.

    Raises:
        InputError: when the shapes do not match.
    """
    if active.ndim != 2 or target.ndim != 2 or len(active) != len(target):
        raise InputError(f"frame_der needs (T, S) and (T, K) with the same T, got {active.shape} and {target.shape}")
    hypothesis, reference = active > 0.5, target > 0.5
    together = hypothesis.T.astype(np.float64) @ reference  # (S, K) frames in which both are active
    if order == "sorted":
        together *= _may_swap(reference, hypothesis.shape[1])
    correct = together[linear_sum_assignment(together, maximize=True)].sum()
    num_reference, num_hypothesis = reference.sum(axis=1), hypothesis.sum(axis=1)
    return DerCounts(
        total=float(num_reference.sum()),
        miss=float(np.maximum(num_reference - num_hypothesis, 0).sum()),
        false_alarm=float(np.maximum(num_hypothesis - num_reference, 0).sum()),
        confusion=float(np.minimum(num_reference, num_hypothesis).sum() - correct),
    )


def _may_swap(reference: np.ndarray, slots: int) -> np.ndarray:
    """Return (slots, K), True for the speakers who arrive in the same frame as the one whose number the slot has."""
    arrivals = (reference.cumsum(axis=0) == 0).sum(axis=0)
    due = np.full(slots, -1)
    due[: len(arrivals)] = arrivals[:slots]
    return due[:, None] == arrivals

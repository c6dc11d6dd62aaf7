"""Sort loss, permutation-invariant loss and NeMo's rule, over all orders of the speakers."""

import itertools
import math
from collections.abc import Iterator

import numpy as np

__all__ = ["arrival", "nemo_order", "orders", "permutation_loss", "row_loss", "sort_loss"]

Order = tuple[int, ...]


def row_loss(logits: np.ndarray, activity: np.ndarray, order: Order) -> float:
    """Summed cross-entropy of (T, S) logits when slot s is to show speaker ``order[s]``."""
    total = 0.0
    for t in range(logits.shape[0]):
        for slot, speaker in enumerate(order):
            x, y = float(logits[t, slot]), float(activity[t, speaker])
            total += max(x, 0.0) - x * y + math.log1p(math.exp(-abs(x)))
    return total


def arrival(activity: np.ndarray, speaker: int) -> int:
    for t in range(len(activity)):
        if activity[t, speaker] >= 0.5:
            return t
    return len(activity)


def orders(activity: np.ndarray, by_arrival: bool) -> Iterator[Order]:
    """All orders, or those in which nobody precedes an earlier arrival."""
    times = [arrival(activity, speaker) for speaker in range(activity.shape[1])]
    for order in itertools.permutations(range(activity.shape[1])):
        if not by_arrival or [times[speaker] for speaker in order] == sorted(times):
            yield order


def _batch_loss(logits: np.ndarray, activity: np.ndarray, lengths: list[int], by_arrival: bool) -> float:
    total = 0.0
    for row, length in enumerate(lengths):
        cut_logits, cut_activity = logits[row, :length], activity[row, :length]
        total += min(row_loss(cut_logits, cut_activity, order) for order in orders(cut_activity, by_arrival))
    return total / max(1, sum(lengths) * logits.shape[2])


def sort_loss(logits: np.ndarray, activity: np.ndarray, lengths: list[int]) -> float:
    return _batch_loss(logits, activity, lengths, by_arrival=True)


def permutation_loss(logits: np.ndarray, activity: np.ndarray, lengths: list[int]) -> float:
    return _batch_loss(logits, activity, lengths, by_arrival=False)


def nemo_order(logits: np.ndarray, activity: np.ndarray, by_arrival: bool) -> Order:
    """NeMo's choice for one row: of the legal orders the one with the largest sum of label times probability."""
    probs = 1 / (1 + np.exp(-logits.astype(np.float64)))

    def score(order: Order) -> float:
        return float(sum((probs[:, slot] * activity[:, speaker]).sum() for slot, speaker in enumerate(order)))

    return max(orders(activity, by_arrival), key=score)

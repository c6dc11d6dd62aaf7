"""Early exit, one recording, class and frame at a time."""

import numpy as np

__all__ = ["exit_of", "jaccard", "sorted_by_arrival"]


def sorted_by_arrival(probs: np.ndarray) -> np.ndarray:
    """Sort columns of (T, K) by first frame above a half, absent ones last; ties by the amount of speech."""
    frames, classes = probs.shape
    keys = []
    for k in range(classes):
        above = [t for t in range(frames) if probs[t, k] > 0.5]
        keys.append((above[0] if above else frames, -probs[:, k].sum(), k))
    return np.stack([probs[:, k] for _, _, k in sorted(keys)], axis=1)


def jaccard(one: np.ndarray, other: np.ndarray) -> float:
    both = either = 0.0
    for a, b in zip(one.flatten(), other.flatten(), strict=True):
        both += min(a, b)
        either += max(a, b)
    return both / either if either else 1.0


def exit_of(estimates: list[np.ndarray], confidence: float) -> tuple[int | None, np.ndarray | None]:
    """Return the estimate with which a recording exits, and its values; None if it does not."""
    ordered = [sorted_by_arrival(each) for each in estimates]
    for index in range(1, len(ordered)):
        if jaccard(ordered[index - 1], ordered[index]) >= confidence:
            return index, ordered[index]
    return None, None

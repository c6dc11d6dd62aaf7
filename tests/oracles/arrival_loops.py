"""Arrival times of classes and their order, frame by frame and class by class."""

import numpy as np

__all__ = ["arrivals", "expected_arrivals", "order", "soft_ranks"]


def arrivals(probs: np.ndarray, threshold: float = 0.5) -> list[int]:
    """Return the first frame of (T, K) strictly above the threshold, T for a class without one."""
    found = []
    for k in range(probs.shape[1]):
        frames = [t for t in range(len(probs)) if probs[t, k] > threshold]
        found.append(frames[0] if frames else len(probs))
    return found


def order(probs: np.ndarray) -> list[int]:
    """Return the classes of (T, K) by arrival; at one time, by their speech, then by index."""
    times = arrivals(probs)
    return sorted(range(len(times)), key=lambda k: (times[k], -sum(probs[:, k].tolist()), k))


def expected_arrivals(logits: np.ndarray, sharpness: float) -> tuple[list[float], list[float]]:
    """E[min(arrival, T)] and the chance of arriving at all, from the chance of each frame being the first."""
    times, presence = [], []
    for k in range(logits.shape[1]):
        # In logarithms of 1 - sigmoid(x), because the product underflows.
        quiet = -np.logaddexp(0.0, sharpness * logits[:, k])
        expectation = 0.0
        for t in range(len(logits)):
            expectation += t * np.exp(quiet[:t].sum()) * -np.expm1(quiet[t])
        never = np.exp(quiet.sum())
        times.append(expectation + len(logits) * never)
        presence.append(1 - never)
    return times, presence


def soft_ranks(times: list[float], temperature: float) -> list[float]:
    return [
        sum(1 / (1 + np.exp((times[j] - times[k]) / temperature)) for j in range(len(times)) if j != k)
        for k in range(len(times))
    ]

"""Label memory, one frame, one stored frame and one label at a time, in float64."""

import math

import numpy as np

__all__ = ["label_shares"]


def label_shares(
    stored: list[tuple[np.ndarray, int]],
    frame: np.ndarray,
    labels: int,
    neighbours: int,
    temperature: float,
    stranger: float,
) -> list[float]:
    """The probability of each label for one frame; each neighbour competes with one stranger."""
    away = []
    for key, label in stored:
        one, other = key / math.sqrt(sum(key**2)), frame / math.sqrt(sum(frame**2))
        away.append((sum((a - b) ** 2 for a, b in zip(one, other, strict=True)), label))
    nearest = sorted(away)[:neighbours]
    whole = sum(math.exp(-distance / temperature) + math.exp(-stranger / temperature) for distance, _ in nearest)
    return [
        sum(math.exp(-distance / temperature) for distance, whose in nearest if whose == label) / whole
        for label in range(labels)
    ]

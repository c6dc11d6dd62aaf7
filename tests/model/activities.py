"""Handmade estimates: logits (1, T, K) of classes that speak at given times."""

import torch
from torch import Tensor

__all__ = ["ARRIVALS", "logits_of_turns", "speaking_from"]

ARRIVALS = (60, 5, 130, 30)
"""First frames of four classes; they arrive as third, first, fourth and second."""


def speaking_from(arrivals: tuple[int, ...], frames: int = 200, level: float = 6.0) -> Tensor:
    """Return classes that speak from a frame on; one that starts past the end never speaks."""
    time = torch.arange(frames)[:, None]
    return torch.where(time >= torch.tensor(arrivals), level, -level)[None]


def logits_of_turns(turns: list[tuple[int, int]], frames: int, level: float = 6.0) -> Tensor:
    """Return logits with one turn per class, from its first frame to one past its last."""
    logits = torch.full((1, frames, len(turns)), -level)
    for k, (start, end) in enumerate(turns):
        logits[0, start:end, k] = level
    return logits

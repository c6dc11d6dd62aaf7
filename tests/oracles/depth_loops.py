"""Reversible couplings in plain autograd, and adaptive halting one frame at a time."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

__all__ = ["coupled", "halted"]

Part = Callable[[Tensor], Tensor]


def coupled(x: Tensor, parts: Sequence[tuple[Part, Part]]) -> Tensor:
    """Two streams in ordinary autograd (Reformer, equations 9), averaged."""
    one, two = x, x
    for attend, transform in parts:
        one = one + attend(two)
        two = two + transform(one)
    return (one + two) / 2


def halted(
    x: Tensor, once: Callable[[int, Tensor], Tensor], done: Callable[[Tensor], float], layers: int, halt_at: float
) -> tuple[Tensor, list[list[float]]]:
    """Adaptive computation time (Graves, section 2) of ``x`` (B, T, D): the mean states, and N + R of each frame."""
    rows, frames, _ = x.shape
    probabilities = [[[] for _ in range(frames)] for _ in range(rows)]
    states = [[[] for _ in range(frames)] for _ in range(rows)]
    finished = [[False] * frames for _ in range(rows)]
    for layer in range(layers):
        new, following = once(layer, x), x.clone()
        for row in range(rows):
            for t in range(frames):
                if finished[row][t]:
                    continue
                following[row, t] = new[row, t]
                states[row][t].append(new[row, t])
                before = sum(probabilities[row][t])
                p = done(new[row, t])
                if before + p >= halt_at or layer == layers - 1:
                    finished[row][t] = True
                    p = 1 - before
                probabilities[row][t].append(p)
        x = following
    out = torch.zeros_like(x)
    for row in range(rows):
        for t in range(frames):
            for p, state in zip(probabilities[row][t], states[row][t], strict=True):
                out[row, t] += p * state
    return out, [[len(found) + found[-1] for found in row] for row in probabilities]

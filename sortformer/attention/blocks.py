"""Splitting the time axis into blocks of equal length, padded at the end, and joining them again."""

import torch
from torch import Tensor, nn

__all__ = ["cut", "fitting", "joined", "pairs_within"]


def fitting(size: int, frames: int) -> int:
    """Return the block ``size``, at most the ``frames`` of the recording: a longer block would only add zeros."""
    return max(1, min(size, frames))


def cut(x: Tensor, size: int, fill: float = 0) -> Tensor:
    """Split (B, H, T, d) or (B, H, T) into blocks (B, H, n, size, d) or (B, H, n, size); pad the last with ``fill``."""
    tail = (0, -x.shape[2] % size)
    return nn.functional.pad(x, tail if x.dim() == 3 else (0, 0, *tail), value=fill).unflatten(2, (-1, size))


def joined(blocks: Tensor, frames: int) -> Tensor:
    """Concatenate blocks (B, H, n, size, ...) and return their first ``frames``: (B, H, T, ...)."""
    return blocks.flatten(2, 3)[:, :, :frames]


def pairs_within(size: int, causal: bool, device: torch.device) -> Tensor:
    """Return which frames of a block may be seen by which (size, size): all or, if causal, those up to itself."""
    every = torch.ones(size, size, dtype=torch.bool, device=device)
    return every.tril() if causal else every

"""Which frames, or samples, of a batch count: those within the length of their row."""

import torch
from torch import Tensor

__all__ = ["length_mask"]


def length_mask(lengths: Tensor, count: int) -> Tensor:
    """Return (B, count), True where a place lies within its row's length (B,)."""
    return torch.arange(count, device=lengths.device) < lengths[:, None]

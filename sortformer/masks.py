"""Masks of the valid frames or samples of a batch, from the lengths of its rows."""

import torch
from torch import Tensor

__all__ = ["length_mask"]


def length_mask(lengths: Tensor, count: int) -> Tensor:
    """Return (B, count), True where an index is below its row's length (B,)."""
    return torch.arange(count, device=lengths.device) < lengths[:, None]

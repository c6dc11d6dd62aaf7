"""Ragged tensors: (B, T, C) with lengths (B,), of which the first frames of each row count and the rest is zero."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sortformer.masks import length_mask

__all__ = ["end_to_end", "take", "window"]


def end_to_end(parts: Sequence[tuple[Tensor, Tensor]], frames: int | None = None) -> tuple[Tensor, Tensor]:
    """Concatenate ragged tensors (B, T_i, C), each with its lengths (B,), row by row and without gaps.

    Returns a ragged tensor (B, frames, C) and its lengths (B,). ``frames`` must be at least the length of the longest
    row, which is the default.
    """
    whole = torch.cat([part for part, _ in parts], dim=1)
    total = torch.stack([length for _, length in parts]).sum(dim=0)
    size = int(total.max()) if frames is None else frames
    place = torch.arange(size, device=whole.device).expand(whole.shape[0], -1)
    index, end = place, torch.zeros_like(total)
    for part, length in parts:
        end = end + length
        # Later frames also skip the padding of this part.
        index = index + (place >= end[:, None]) * (part.shape[1] - length)[:, None]
    return take(whole, index, length_mask(total, size)), total


def window(x: Tensor, first: Tensor, length: Tensor, frames: int) -> Tensor:
    """Return the ragged tensor (B, frames, C) of ``length`` (B,) frames of ``x`` (B, T, C) from ``first`` (B,) on."""
    return take(x, first[:, None] + torch.arange(frames, device=x.device), length_mask(length, frames))


def take(x: Tensor, index: Tensor, valid: Tensor) -> Tensor:
    """Return the frames ``index`` (B, t) of ``x`` (B, T, C) as (B, t, C), zero where not ``valid`` (B, t)."""
    with_zeros = nn.functional.pad(x, (0, 0, 0, 1))
    index = torch.where(valid, index, x.shape[1])
    return with_zeros.gather(1, index[..., None].expand(-1, -1, x.shape[2]))

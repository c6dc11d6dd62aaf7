"""Time in blocks of one length: cut, with zeros behind the end, and joined again."""

from torch import Tensor, nn

__all__ = ["cut", "fitting", "joined"]


def fitting(size: int, frames: int) -> int:
    """Return a ``size`` of blocks that goes beyond no recording of ``frames``: what is beyond would be zeros."""
    return max(1, min(size, frames))


def cut(x: Tensor, size: int) -> Tensor:
    """Return the blocks (B, H, n, size, d) of (B, H, T, d), or (B, 1, n, size) of (B, 1, T); zeros fill the last."""
    tail = -x.shape[2] % size
    return nn.functional.pad(x, (0, tail) if x.dim() == 3 else (0, 0, 0, tail)).unflatten(2, (-1, size))


def joined(blocks: Tensor, frames: int) -> Tensor:
    """Return the first ``frames`` of blocks (B, H, n, size, d), one behind the other: (B, H, T, d)."""
    return blocks.flatten(2, 3)[:, :, :frames]

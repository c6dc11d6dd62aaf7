"""Splitting the time axis into blocks of equal length, zero-padded at the end, and joining them again."""

from torch import Tensor, nn

__all__ = ["cut", "fitting", "joined"]


def fitting(size: int, frames: int) -> int:
    """Return the block ``size``, at most the ``frames`` of the recording: a longer block would only add zeros."""
    return max(1, min(size, frames))


def cut(x: Tensor, size: int) -> Tensor:
    """Split (B, H, T, d) into blocks (B, H, n, size, d), or (B, 1, T) into (B, 1, n, size); the last is zero-padded."""
    tail = -x.shape[2] % size
    return nn.functional.pad(x, (0, tail) if x.dim() == 3 else (0, 0, 0, tail)).unflatten(2, (-1, size))


def joined(blocks: Tensor, frames: int) -> Tensor:
    """Concatenate blocks (B, H, n, size, d) and return their first ``frames``: (B, H, T, d)."""
    return blocks.flatten(2, 3)[:, :, :frames]

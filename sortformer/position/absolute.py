"""Absolute positions, added to the frames: sinusoidal, learned, and the coordinates of a Universal Transformer.

The codes of a frame depend on where the recording starts. In a stack they are added at every layer.
"""

import torch
from torch import Tensor, nn

from sortformer.errors import InputError
from sortformer.position.protocol import Position
from sortformer.precision import wide

__all__ = ["CoordinatePosition", "LearnedPosition", "SinusoidalPosition", "sinusoids"]


def sinusoids(positions: Tensor, dim: int) -> Tensor:
    """Return sinusoidal codes (..., dim) of real positions (...), sine and cosine interleaved.

    Vaswani et al., arXiv 1706.03762, section 3.5; defined for all real positions, so soft ranks have codes too.
    """
    positions = wide(positions)
    frequencies = 10_000.0 ** (-torch.arange(0, dim, 2, device=positions.device, dtype=positions.dtype) / dim)
    angles = positions[..., None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]


class SinusoidalPosition(Position):
    """Add the sinusoids of the frame's index: Vaswani et al., arXiv 1706.03762, section 3.5."""

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        """Return ``x`` (B, T, D) plus the codes of ``at`` (B or 1, T)."""
        return x + sinusoids(at, x.shape[-1]).to(x.dtype)


class CoordinatePosition(Position):
    """Add the sinusoids of the frame's index and of the layer's: Dehghani et al., arXiv 1807.03819, equation 6."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        """Return ``x`` (B, T, D) plus the codes of ``at`` (B or 1, T) and of the depth, counted from 1."""
        depth = torch.tensor(self.depth + 1, device=x.device)
        return x + (sinusoids(at, x.shape[-1]) + sinusoids(depth, x.shape[-1])).to(x.dtype)


class LearnedPosition(Position):
    """Add a learned vector for each index: Gehring et al., arXiv 1705.03122, section 3.1."""

    def __init__(self, dim: int, frames: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(frames, dim))

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        """Return ``x`` (B, T, D) plus the rows ``at`` (B or 1, T), rounded down, of the table.

        Raises:
            InputError: if a frame lies beyond the end of the table.
        """
        if at.numel() and int(at.max()) >= len(self.table):
            raise InputError(
                f"learned positions cover {len(self.table)} frames, but the recording has {int(at.max()) + 1}: "
                "cut it, or choose a position without a limit"
            )
        return x + self.table[at.long()]

"""Rotary positions (RoPE): Su et al., "RoFormer", arXiv 2104.09864, equation 34, in the rotate-half layout."""

import torch
from torch import Tensor

from sortformer.position.protocol import Places, Position
from sortformer.precision import finest

__all__ = ["RotaryPosition"]


class RotaryPosition(Position):
    """Rotate queries and keys by their frame index, so that their product depends only on their distance."""

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"rotary positions need an even head size, got {head_dim}")
        self.head_dim = head_dim

    def rotate(self, query: Tensor, key: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        """Return the rotated query (B, H, T, d) and key (B, H, S, d)."""
        turned = self._turns(places, places.query, query.dtype)
        same = places.query is places.key
        return _rotate(query, *turned), _rotate(key, *(turned if same else self._turns(places, places.key, key.dtype)))

    def _turns(self, places: Places, at: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        # Float32 cannot resolve neighbouring angles hours into a stream. Whole recordings have it, as in NVIDIA's code.
        if places.first is None:
            at = at.to(finest(at.device))
        # Not a buffer: a model in half precision would round it, and so the angles.
        channels = torch.arange(0, self.head_dim, 2, dtype=torch.float32, device=at.device)
        angles = at[:, None, :, None] * 10_000.0 ** (-channels / self.head_dim)
        return angles.cos().to(dtype), angles.sin().to(dtype)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

"""Rotary positions (RoPE): Su et al., "RoFormer", arXiv 2104.09864, equation 34, in the rotate-half layout."""

import torch
from torch import Tensor

from sortformer.position.protocol import Places, Position
from sortformer.precision import finest

__all__ = ["RotaryPosition"]


class RotaryPosition(Position):
    """Rotate queries and keys by their frame index, so that their product depends on the distance alone."""

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"rotary positions need an even head size, got {head_dim}")
        self.head_dim = head_dim

    def rotate(self, query: Tensor, key: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        """Return the rotated query (B, H, T, d) and key (B, H, S, d)."""
        if places.query is places.key:
            cos, sin = self._turns(places.query, query.dtype)
            return _rotate(query, cos, sin), _rotate(key, cos, sin)
        # Hours into a stream, float32 no longer tells the angles of neighbours apart.
        turned = [self._turns(at.to(finest(at.device)), query.dtype) for at in (places.query, places.key)]
        return _rotate(query, *turned[0]), _rotate(key, *turned[1])

    def _turns(self, at: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        # Not a buffer, which a model in half precision would round, and the angles with it.
        channels = torch.arange(0, self.head_dim, 2, dtype=torch.float32, device=at.device)
        angles = at[:, None, :, None] * 10_000.0 ** (-channels / self.head_dim)
        return angles.cos().to(dtype), angles.sin().to(dtype)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

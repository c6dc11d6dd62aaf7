"""Rotary positions (RoPE): Su et al., "RoFormer", arXiv 2104.09864, equation 34, in the rotate-half layout."""

import torch
from torch import Tensor, nn

__all__ = ["RotaryPosition"]


class RotaryPosition(nn.Module):
    """Rotate queries and keys by their frame index, so that their product depends on the distance alone."""

    def __init__(self, head_dim: int, base: float = 10_000.0) -> None:
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"rotary positions need an even head size, got {head_dim}")
        self.frequencies: Tensor
        frequencies = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the rotated query and key (B, H, T, d); there is no bias."""
        angles = torch.arange(query.shape[2], device=query.device)[:, None] * self.frequencies
        cos, sin = angles.cos().to(query.dtype), angles.sin().to(query.dtype)
        return _rotate(query, cos, sin), _rotate(key, cos, sin), None


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

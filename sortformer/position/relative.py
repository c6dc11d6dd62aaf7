"""Relative positions that score each pair of frames: Shaw et al. and Transformer-XL."""

import torch
from torch import Tensor, nn

__all__ = ["ShawPosition", "TransformerXLPosition", "sinusoids"]


def sinusoids(positions: Tensor, dim: int) -> Tensor:
    """Return sinusoidal codes (..., dim) of real positions (...), sine and cosine interleaved.

    Vaswani et al., arXiv 1706.03762, section 3.5; defined at every real position, so a soft rank has a code too.
    """
    frequencies = 10_000.0 ** (-torch.arange(0, dim, 2, device=positions.device, dtype=torch.float32) / dim)
    angles = positions[..., None].to(torch.float32) * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]


class ShawPosition(nn.Module):
    """Add a learned key vector per clipped distance: Shaw et al., arXiv 1803.02155, equation 4 (keys only)."""

    def __init__(self, head_dim: int, max_distance: int = 64) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.keys = nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * head_dim**-0.5)

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return query and key unchanged, and the bias ``q_i . a_clip(j - i)``."""
        frames = torch.arange(query.shape[2], device=query.device)
        distance = (frames[None, :] - frames[:, None]).clamp(-self.max_distance, self.max_distance) + self.max_distance
        scores = query @ self.keys.T  # (B, H, T, 2 * max_distance + 1)
        return query, key, scores.gather(-1, distance.expand(*scores.shape[:2], -1, -1))


class TransformerXLPosition(nn.Module):
    """Score content and sinusoidal distance apart: Dai et al., arXiv 1901.02860, section 3.3 (NVIDIA's Conformer)."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.projection = nn.Linear(heads * head_dim, heads * head_dim, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, head_dim))
        self.distance_bias = nn.Parameter(torch.zeros(heads, head_dim))

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return ``q + u``, the key, and the bias ``(q_i + v) . r_(i - j)``."""
        heads, frames, head_dim = query.shape[1:]
        distance = torch.arange(frames - 1, -frames, -1, device=query.device)
        codes = self.projection(sinusoids(distance, heads * head_dim).to(query.dtype))
        codes = codes.view(-1, heads, head_dim).permute(1, 2, 0)  # (H, d, 2T - 1), distance T-1 first
        scores = (query + self.distance_bias[:, None]) @ codes
        return query + self.content_bias[:, None], key, _shift(scores)


def _shift(scores: Tensor) -> Tensor:
    """Turn columns of distance (T-1 ... -(T-1)) into columns of key index: out[i, j] = scores[i, T - 1 - i + j]."""
    *batch, frames, distances = scores.shape
    padded = nn.functional.pad(scores, (1, 0)).view(*batch, distances + 1, frames)
    return padded[..., 1:, :].reshape(*batch, frames, distances)[..., :frames]

"""Softmax attention under masks, and long sequences of queries in tiles."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

__all__ = ["TILE_FRAMES", "attend", "expectation", "masked", "masked_score", "scores", "tiles"]

TILE_FRAMES = 128


def tiles(frames: int) -> Iterator[slice]:
    """Yield the slices of successive tiles of ``frames`` queries."""
    for start in range(0, frames, TILE_FRAMES):
        yield slice(start, min(start + TILE_FRAMES, frames))


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor,
    bias: Tensor | None = None,
    factor: Tensor | None = None,
) -> Tensor:
    """Return softmax((q k^T + bias) / sqrt(d)) v, (B, H, T, d), over the ``allowed`` pairs (broadcast to (B, H, T, S)).

    Vaswani et al., arXiv 1706.03762, equation 1. With a ``factor`` the scores are rectified and multiplied by it
    (Wu et al., arXiv 2010.06925, equation 7).
    """
    scale = query.shape[-1] ** -0.5
    mask = masked(query.new_zeros(allowed.shape), allowed)
    if bias is not None:
        mask = mask + bias * scale
    if factor is None:
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = torch.relu(query @ key.transpose(-1, -2)) * factor * scale + mask
    return scores.softmax(dim=-1) @ value


def scores(query: Tensor, key: Tensor) -> Tensor:
    """Return q . k / sqrt(d), (..., T, n) from query (..., T, d) and key (..., n, d)."""
    return query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5


def expectation(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
    """Return softmax(q . k / sqrt(d)) v, (..., T, d), over the ``allowed`` keys (broadcast to (..., T, n))."""
    return masked(scores(query, key), allowed).softmax(dim=-1) @ value


def masked(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the scores, with :func:`masked_score` where they are not ``allowed`` (broadcast)."""
    return scores.masked_fill(~allowed, masked_score(scores))


def masked_score(scores: Tensor) -> float:
    """Return the value of masked scores, for the dtype of ``scores``.

    It is finite, at most half of the dtype's range: a row without a valid key then gives a finite mean, which is masked
    later, instead of NaN gradients, whatever is added to it.
    """
    return max(-1e9, torch.finfo(scores.dtype).min / 2)

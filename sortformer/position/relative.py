"""Relative positions that score pairs of frames by codes of their distance: Shaw et al. and Transformer-XL."""

import torch
from torch import Tensor, nn

from sortformer.position.absolute import sinusoids
from sortformer.position.protocol import Places, Position

__all__ = ["ShawPosition", "TransformerXLPosition"]


class ShawPosition(Position):
    """Add a learned key vector per clipped distance: Shaw et al., arXiv 1803.02155, equation 4.

    There is none for values (equation 3): cores do not return their weights for each distance.
    """

    def __init__(self, head_dim: int, max_distance: int = 64) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.keys = nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * head_dim**-0.5)

    def bias(self, query: Tensor, places: Places, codes: Tensor | None = None) -> Tensor:
        """Return ``q_i . a_clip(j - i)``; fractional distances are rounded down."""
        del codes
        distance = places.distance
        if distance.is_floating_point():
            distance = distance.floor().long()
        distance = distance.clamp(-self.max_distance, self.max_distance) + self.max_distance
        scores = query @ self.keys.T  # (B, H, T, 2 * max_distance + 1)
        return scores.gather(-1, distance[:, None].expand(*scores.shape[:2], -1, -1))


class TransformerXLPosition(Position):
    """Score content and sinusoidal distance apart: Dai et al., arXiv 1901.02860, section 3.3 (NVIDIA's Conformer)."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.projection = nn.Linear(heads * head_dim, heads * head_dim, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, head_dim))
        self.distance_bias = nn.Parameter(torch.zeros(heads, head_dim))

    def rotate(self, query: Tensor, key: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        """Return ``q + u`` and the key."""
        del places
        return query + self.content_bias[:, None], key

    def codes(self, places: Places) -> Tensor:
        """Return the projected codes (H, d, 2 S - 1) of the distances S - 1, ..., 1 - S of S consecutive keys."""
        frames = places.key.shape[1]
        return self._projected(torch.arange(frames - 1, -frames, -1, device=places.key.device))

    def bias(self, query: Tensor, places: Places, codes: Tensor | None = None) -> Tensor:
        """Return ``(q_i + v) . r_(i - j)``."""
        query = query + self.distance_bias[:, None]
        if places.first is not None:
            codes = self.codes(places) if codes is None else codes
            frames, keys = query.shape[2], places.key.shape[1]
            farthest = keys - frames - places.first  # the column of the last query and the first key
            return _shift(query @ codes[..., farthest : farthest + frames + keys - 1], keys)
        distances, which = torch.unique(-places.distance, return_inverse=True)
        scores = query @ self._projected(distances)  # (B, H, T, as many as there are distances)
        return scores.gather(-1, which[:, None].expand(*scores.shape[:2], -1, -1))

    def _projected(self, distances: Tensor) -> Tensor:
        """Return the projected codes (H, d, n) of n distances i - j."""
        heads, head_dim = self.content_bias.shape
        codes = self.projection(sinusoids(distances, heads * head_dim).to(self.projection.weight.dtype))
        return codes.view(-1, heads, head_dim).permute(1, 2, 0)


def _shift(scores: Tensor, keys: int) -> Tensor:
    """Turn columns of falling distance into columns of key index: out[i, j] = scores[i, T - 1 - i + j]."""
    *batch, frames, distances = scores.shape
    padded = nn.functional.pad(scores, (1, 0)).view(*batch, distances + 1, frames)
    return padded[..., 1:, :].reshape(*batch, frames, distances)[..., :keys]

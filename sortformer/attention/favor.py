"""FAVOR+: softmax attention by positive orthogonal random features (Performer).

Choromanski et al., arXiv 2009.14794, section 2. Two things differ from the public implementations: the orthogonal
directions are uniform (Haar), without which the estimate is biased, and nothing looks at keys that come later.
"""

import torch
from torch import Tensor

from sortformer.attention.kernel import KernelAttention

__all__ = ["FavorAttention", "orthogonal_directions"]

_RELU_FLOOR = 1e-3


class FavorAttention(KernelAttention):
    """Features exp(w . x - |x|^2 / 2) with x = q / d^(1/4), or ReLU(w . x), of ``features`` random directions w."""

    def __init__(self, head_dim: int, features: int, kernel: str, causal: bool) -> None:
        super().__init__(causal)
        self.features = features
        self.kernel = kernel
        self.directions: Tensor
        self.register_buffer("directions", orthogonal_directions(features, head_dim))

    def redraw(self, generator: torch.Generator) -> None:
        """Draw new directions, as is done now and then in training (section 4.2 of the paper)."""
        count, dim = self.directions.shape
        self.directions.copy_(orthogonal_directions(count, dim, generator))

    def query_features(self, query: Tensor) -> Tensor:
        """Return (B, H, T, m); their factor |x|^2 / 2 is the query's own and cancels."""
        projected = self._project(query)
        if self.kernel == "relu":
            return projected.relu() + _RELU_FLOOR
        return (projected - projected.amax(dim=-1, keepdim=True).detach()).exp()

    def key_features(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, H, T, m) of which the largest is one, and their scale."""
        projected = self._project(key)
        if self.kernel == "relu":
            return projected.relu() + _RELU_FLOOR, projected.new_zeros(projected.shape[:-1])
        projected = projected - 0.5 * key.shape[-1] ** -0.5 * key.square().sum(dim=-1, keepdim=True)
        # The scale takes part in the gradient: the features are divided by what it multiplies them with.
        scale = projected.amax(dim=-1)
        return (projected - scale[..., None]).exp(), scale

    def _project(self, x: Tensor) -> Tensor:
        return (x * x.shape[-1] ** -0.25) @ self.directions.T.to(x.dtype)


def orthogonal_directions(count: int, dim: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw (count, dim) directions as long as Gaussian vectors are, orthogonal within each group of ``dim``.

    Orthonormal matrices by QR are uniform only once the signs of R's diagonal are taken out: Mezzadri,
    arXiv math-ph/0609050, section 5. Without a generator it draws as modules do when they are made.
    """
    groups = []
    for _ in range(-(-count // dim)):
        q, r = torch.linalg.qr(torch.randn(dim, dim, generator=generator))
        groups.append((q * r.diagonal().sign()).T)
    lengths = torch.randn(count, dim, generator=generator).norm(dim=1, keepdim=True)
    return torch.cat(groups)[:count] * lengths

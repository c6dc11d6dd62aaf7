"""RFA: softmax attention over unit vectors by random Fourier features."""

import torch
from torch import Tensor, nn

from sortformer.attention.drawn import DrawnAttention

__all__ = ["RandomFeatureAttention"]


class RandomFeatureAttention(DrawnAttention):
    """Features [sin(w . x), cos(w . x)] of unit vectors x: Peng et al., arXiv 2103.02143, section 3.1, without a gate.

    Directions w are orthogonal, as in FAVOR+; the paper's are independent. The exponentials of the norms are constant
    and cancel. Features can be negative, and so can a weight or even a sum of weights: unlike FAVOR+, the quotient may
    diverge.
    """

    def __init__(self, head_dim: int, features: int, causal: bool, redraw_every: int = 0) -> None:
        super().__init__(head_dim, features, redraw_every, causal)
        self.features = 2 * features

    def query_features(self, query: Tensor) -> Tensor:
        """Return (B, H, T, 2 m)."""
        projected = nn.functional.normalize(query, dim=-1) @ self.directions.T.to(query.dtype)
        return torch.cat([projected.sin(), projected.cos()], dim=-1)

    def key_features(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, H, T, 2 m), with scale 0."""
        return self.query_features(key), key.new_zeros(key.shape[:-1])

"""FAVOR+: softmax attention by positive orthogonal random features (Performer).

Choromanski et al., arXiv 2009.14794, section 2. Two things differ from the public implementations: the orthogonal
directions are uniform (Haar), without which the estimate is biased, and causal attention does not use later keys, not
even to scale the features.
"""

from torch import Tensor

from sortformer.attention.drawn import DrawnAttention

__all__ = ["FavorAttention"]

_RELU_FLOOR = 1e-3


class FavorAttention(DrawnAttention):
    """Features exp(w . x - |x|^2 / 2) with x = q / d^(1/4), or ReLU(w . x), of ``features`` random directions w."""

    def __init__(self, head_dim: int, features: int, kernel: str, causal: bool, redraw_every: int = 0) -> None:
        super().__init__(head_dim, features, redraw_every, causal)
        self.features = features
        self.kernel = kernel

    def query_features(self, query: Tensor) -> Tensor:
        """Return (B, H, T, m), without the term |x|^2 / 2, which is constant for each query and cancels."""
        projected = self._project(query)
        if self.kernel == "relu":
            return projected.relu() + _RELU_FLOOR
        return (projected - projected.amax(dim=-1, keepdim=True).detach()).exp()

    def key_features(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, H, T, m) and their scale; the softmax kernel scales a key's largest feature to one."""
        projected = self._project(key)
        if self.kernel == "relu":
            return projected.relu() + _RELU_FLOOR, projected.new_zeros(projected.shape[:-1])
        projected = projected - 0.5 * key.shape[-1] ** -0.5 * key.square().sum(dim=-1, keepdim=True)
        # Not detached: features are divided by exp(scale) here and multiplied by it later, so its gradient cancels.
        scale = projected.amax(dim=-1)
        return (projected - scale[..., None]).exp(), scale

    def _project(self, x: Tensor) -> Tensor:
        return (x * x.shape[-1] ** -0.25) @ self.directions.T.to(x.dtype)

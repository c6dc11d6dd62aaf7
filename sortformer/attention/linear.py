"""Linear attention: the kernel (elu(q) + 1) . (elu(k) + 1)."""

from torch import Tensor

from sortformer.attention.kernel import KernelAttention

__all__ = ["LinearAttention"]


class LinearAttention(KernelAttention):
    """Katharopoulos et al., arXiv 2006.16236, equation 7."""

    def __init__(self, head_dim: int, causal: bool) -> None:
        super().__init__(causal)
        self.features = head_dim

    def query_features(self, query: Tensor) -> Tensor:
        """Return (B, H, T, d)."""
        return _elu_plus_one(query)

    def key_features(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, H, T, d), with scale 0."""
        return _elu_plus_one(key), key.new_zeros(key.shape[:-1])


def _elu_plus_one(x: Tensor) -> Tensor:
    positive = x.relu()  # not a clamp: the gradient at its bound depends on torch's version
    return (x - positive).exp() + positive  # not elu(x) + 1, whose exponential drowns in the 1

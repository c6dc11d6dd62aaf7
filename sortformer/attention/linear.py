"""Linear attention: the kernel (elu(q) + 1) . (elu(k) + 1)."""

from torch import Tensor, nn

from sortformer.attention.kernel import KernelAttention

__all__ = ["LinearAttention"]


class LinearAttention(KernelAttention):
    """Katharopoulos et al., arXiv 2006.16236, equation 7."""

    def __init__(self, head_dim: int, causal: bool) -> None:
        super().__init__(causal)
        self.features = head_dim

    def query_features(self, query: Tensor) -> Tensor:
        """Return (B, H, T, d)."""
        return nn.functional.elu(query) + 1

    def key_features(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, H, T, d), with scale 0."""
        return nn.functional.elu(key) + 1, key.new_zeros(key.shape[:-1])

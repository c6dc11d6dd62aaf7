"""The Transformer encoder block: Vaswani et al., arXiv 1706.03762, section 3.1, with its norm before or after."""

from torch import Tensor, nn

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import AttentionConfig

__all__ = ["TransformerBlock"]


class TransformerBlock(nn.Module):
    """Self-attention and feed-forward, each with a residual and a LayerNorm before ("pre") or after ("post") it."""

    def __init__(
        self,
        dim: int,
        heads: int,
        ff_dim: int,
        *,
        norm: str,
        activation: str,
        attention: AttentionConfig,
        depth: int = 0,
        dropout: float,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__()
        self.pre = norm == "pre"
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = MultiHeadAttention(dim, heads, attention, depth=depth, qkv_bias=qkv_bias)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.expand = nn.Linear(dim, ff_dim)
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.contract = nn.Linear(ff_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """Return (B, T, D) from ``x`` (B, T, D); frames that are not ``valid`` (B, T) are never attended to."""
        if self.pre:
            x = x + self.dropout(self.attention(self.attention_norm(x), valid))
            return x + self.dropout(self._feed_forward(self.feed_forward_norm(x)))
        x = self.attention_norm(x + self.dropout(self.attention(x, valid)))
        return self.feed_forward_norm(x + self.dropout(self._feed_forward(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.contract(self.dropout(self.activation(self.expand(x))))

"""Multi-head self-attention: projections, positions and a core put together."""

from torch import Tensor, nn

from sortformer.attention.full import full_attention
from sortformer.attention.local import local_attention
from sortformer.position import RotaryPosition, ShawPosition, TransformerXLPosition

__all__ = ["MultiHeadAttention"]


class MultiHeadAttention(nn.Module):
    """Self-attention with a chosen position mechanism, over all frames or over a window."""

    def __init__(
        self, dim: int, heads: int, *, position: str, window: int | None = None, qkv_bias: bool = True
    ) -> None:
        super().__init__()
        self.heads = heads
        self.window = window
        self.query = nn.Linear(dim, dim, bias=qkv_bias)
        self.key = nn.Linear(dim, dim, bias=qkv_bias)
        self.value = nn.Linear(dim, dim, bias=qkv_bias)
        self.out = nn.Linear(dim, dim)
        self.position = _position(position, heads, dim // heads)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """Return (B, T, D) from ``x`` (B, T, D); frames that are not ``valid`` (B, T) are never attended to."""
        if valid is not None:
            x = x.masked_fill(~valid[..., None], 0.0)  # a weight of zero does not silence NaN
        query, key, value = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        bias = None
        if self.position is not None:
            query, key, bias = self.position(query, key)
        if self.window is None:
            mixed = full_attention(query, key, value, valid, bias)
        else:
            mixed = local_attention(query, key, value, valid, self.window)
        return self.out(mixed.transpose(1, 2).flatten(2))


def _position(name: str, heads: int, head_dim: int) -> nn.Module | None:
    if name == "none":
        return None
    if name == "rope":
        return RotaryPosition(head_dim)
    if name == "shaw":
        return ShawPosition(head_dim)
    if name == "xl":
        return TransformerXLPosition(heads, head_dim)
    raise ValueError(f"unknown position mechanism '{name}'; known: none, rope, shaw, xl")

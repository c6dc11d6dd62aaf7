"""The Transformer encoder block: Vaswani et al., arXiv 1706.03762, section 3.1, with its norm before or after."""

from dataclasses import replace

from torch import Tensor, nn

from sortformer.attention import AttentionState, LayerStep, MultiHeadAttention
from sortformer.config.attention import AttentionConfig
from sortformer.layers.chunks import in_chunks
from sortformer.layers.residual import build_residual

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
        residual: str = "sum",
        ff_chunk_frames: int | None = None,
    ) -> None:
        super().__init__()
        self.pre = norm == "pre"
        self.ff_chunk_frames = ff_chunk_frames
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = MultiHeadAttention(dim, heads, attention, depth=depth, qkv_bias=qkv_bias)
        self.attention_residual = build_residual(residual, dim)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.expand = nn.Linear(dim, ff_dim)
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.contract = nn.Linear(ff_dim, dim)
        self.feed_forward_residual = build_residual(residual, dim)
        self.dropout = nn.Dropout(dropout)

    def init_state(self, x: Tensor) -> AttentionState:
        """Return the state before the first frame, for frames like ``x`` (B, T, D)."""
        return self.attention.init_state(x)

    def forward(self, x: Tensor, valid: Tensor, state: AttentionState | None = None) -> LayerStep:
        """Take a chunk ``x`` (B, T, D) after those that left the state; None: a whole recording.

        Frames that are not ``valid`` (B, T) are never attended to.
        """
        attended = self.attend(self.attention_norm(x) if self.pre else x, valid, state)
        x = self.attention_residual(x, attended.out)
        if self.pre:
            out = self.feed_forward_residual(x, self.transform(self.feed_forward_norm(x)))
        else:
            x = self.attention_norm(x)
            out = self.feed_forward_norm(self.feed_forward_residual(x, self.transform(x)))
        return replace(attended, out=out)

    def attend(self, x: Tensor, valid: Tensor, state: AttentionState | None = None) -> LayerStep:
        """Return the output (B, T, D) of the attention branch for a chunk or a whole recording."""
        attended = self.attention(x, valid, state)
        return replace(attended, out=self.dropout(attended.out))

    def transform(self, x: Tensor) -> Tensor:
        """Return the output (B, T, D) of the feed-forward branch."""
        return in_chunks(self._feed_forward, x, self.ff_chunk_frames)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.contract(self.dropout(self.activation(self.expand(x)))))

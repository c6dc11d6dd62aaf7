"""The Conformer block: Gulati et al., arXiv 2005.08100, section 2."""

from torch import Tensor, nn

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import AttentionConfig
from sortformer.layers.chunks import in_chunks
from sortformer.layers.residual import build_residual

__all__ = ["ConformerBlock"]


class ConformerBlock(nn.Module):
    """Half feed-forward, self-attention, convolution, half feed-forward, and a closing LayerNorm."""

    def __init__(
        self,
        dim: int,
        heads: int,
        ff_dim: int,
        conv_kernel: int,
        *,
        conv_norm: str,
        attention: AttentionConfig,
        depth: int = 0,
        dropout: float,
        residual: str = "sum",
        ff_chunk_frames: int | None = None,
    ) -> None:
        super().__init__()
        self.ff_chunk_frames = ff_chunk_frames
        self.feed_forward_1 = _feed_forward(dim, ff_dim, dropout)
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = MultiHeadAttention(dim, heads, attention, depth=depth)
        self.convolution = ConvolutionModule(dim, conv_kernel, conv_norm)
        self.feed_forward_2 = _feed_forward(dim, ff_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.residuals = nn.ModuleList(build_residual(residual, dim) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """Return (B, T, D) from ``x`` (B, T, D); frames that are not ``valid`` (B, T) touch no other."""
        first, second, third, fourth = self.residuals
        x = first(x, 0.5 * in_chunks(self.feed_forward_1, x, self.ff_chunk_frames))
        x = second(x, self.dropout(self.attention(self.attention_norm(x), valid)))
        x = third(x, self.dropout(self.convolution(x, valid)))
        x = fourth(x, 0.5 * in_chunks(self.feed_forward_2, x, self.ff_chunk_frames))
        return self.norm(x)


class ConvolutionModule(nn.Module):
    """LayerNorm, pointwise GLU, depthwise convolution over time, norm, Swish, pointwise."""

    def __init__(self, dim: int, kernel: int, norm: str) -> None:
        super().__init__()
        self.input_norm = nn.LayerNorm(dim)
        self.expand = nn.Linear(dim, 2 * dim)
        self.depthwise = nn.Conv1d(dim, dim, kernel, padding=kernel // 2, groups=dim)
        # BatchNorm is there for NVIDIA's weights; LayerNorm keeps rows independent in training too.
        self.norm = nn.LayerNorm(dim) if norm == "layer" else nn.BatchNorm1d(dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, valid: Tensor | None) -> Tensor:
        """Return (B, T, D); what is not ``valid`` (B, T) is zero to the convolution."""
        x = nn.functional.glu(self.expand(self.input_norm(x)), dim=-1)
        if valid is not None:
            x = x.masked_fill(~valid[..., None], 0.0)
        x = self.depthwise(x.transpose(1, 2))
        x = self.norm(x).transpose(1, 2) if isinstance(self.norm, nn.BatchNorm1d) else self.norm(x.transpose(1, 2))
        return self.out(nn.functional.silu(x))


def _feed_forward(dim: int, ff_dim: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(dim),
        nn.Linear(dim, ff_dim),
        nn.SiLU(),
        nn.Dropout(dropout),
        nn.Linear(ff_dim, dim),
        nn.Dropout(dropout),
    )

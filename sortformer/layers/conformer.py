"""The Conformer block: Gulati et al., arXiv 2005.08100, section 2."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sortformer.attention import AttentionState, LayerStep, MultiHeadAttention
from sortformer.config.attention import AttentionConfig
from sortformer.layers.chunks import in_chunks
from sortformer.layers.residual import build_residual

__all__ = ["ConformerBlock", "ConformerState"]


@dataclass(frozen=True, slots=True)
class ConformerState:
    """The state of a block between chunks."""

    attention: AttentionState
    convolution: Tensor  # (B, D, kernel - 1) the last inputs of a causal convolution


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
        conv_causal: bool = False,
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
        self.convolution = ConvolutionModule(dim, conv_kernel, conv_norm, causal=conv_causal)
        self.feed_forward_2 = _feed_forward(dim, ff_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.residuals = nn.ModuleList(build_residual(residual, dim) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def init_state(self, x: Tensor) -> ConformerState:
        """Return the state before the first frame, for frames like ``x`` (B, T, D).

        Raises:
            ValueError: if the convolution looks ahead, or the attention has no state.
        """
        return ConformerState(self.attention.init_state(x), self.convolution.init_state(x))

    def forward(self, x: Tensor, valid: Tensor, state: ConformerState | None = None) -> LayerStep:
        """Take a chunk ``x`` (B, T, D) after those that left the state; None: a whole recording.

        Frames that are not ``valid`` (B, T) do not affect the others.
        """
        first, second, third, fourth = self.residuals
        x = first(x, 0.5 * in_chunks(self.feed_forward_1, x, self.ff_chunk_frames))
        attended = self.attention(self.attention_norm(x), valid, None if state is None else state.attention)
        x = second(x, self.dropout(attended.out))
        heard, tail = self.convolution(x, valid, None if state is None else state.convolution)
        x = third(x, self.dropout(heard))
        x = self.norm(fourth(x, 0.5 * in_chunks(self.feed_forward_2, x, self.ff_chunk_frames)))
        return LayerStep(x, None if state is None else ConformerState(attended.state, tail), attended.losses)


class ConvolutionModule(nn.Module):
    """LayerNorm, pointwise GLU, depthwise convolution over time, norm, Swish, pointwise.

    The kernel is centred on a frame, or ends with it where the convolution is ``causal``.
    """

    def __init__(self, dim: int, kernel: int, norm: str, *, causal: bool) -> None:
        super().__init__()
        self.past = kernel - 1 if causal or kernel == 1 else None
        self.input_norm = nn.LayerNorm(dim)
        self.expand = nn.Linear(dim, 2 * dim)
        self.depthwise = nn.Conv1d(dim, dim, kernel, padding=0 if causal else kernel // 2, groups=dim)
        # BatchNorm is there for NVIDIA's weights; LayerNorm keeps rows independent in training too.
        self.norm = nn.LayerNorm(dim) if norm == "layer" else nn.BatchNorm1d(dim)
        self.out = nn.Linear(dim, dim)

    def init_state(self, x: Tensor) -> Tensor:
        """Return the silence (B, D, kernel - 1) before the first frame, for frames like ``x`` (B, T, D)."""
        if self.past is None:
            raise ValueError("this convolution is not causal: it needs whole recordings")
        return x.new_zeros(len(x), x.shape[2], self.past)

    def forward(self, x: Tensor, valid: Tensor, tail: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return (B, T, D) and the next ``tail``, the last inputs of a causal convolution.

        Frames that are not ``valid`` (B, T) are zero to the convolution.
        """
        x = nn.functional.glu(self.expand(self.input_norm(x)), dim=-1)
        x = x.masked_fill(~valid[..., None], 0.0).transpose(1, 2)
        if self.past is not None:
            before = x.new_zeros(*x.shape[:2], self.past) if tail is None else tail
            x = torch.cat((before, x), dim=2)
        tail = x[:, :, x.shape[2] - (self.past or 0) :]
        x = self.depthwise(x)
        x = self.norm(x).transpose(1, 2) if isinstance(self.norm, nn.BatchNorm1d) else self.norm(x.transpose(1, 2))
        return self.out(nn.functional.silu(x)), tail


def _feed_forward(dim: int, ff_dim: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(dim),
        nn.Linear(dim, ff_dim),
        nn.SiLU(),
        nn.Dropout(dropout),
        nn.Linear(ff_dim, dim),
        nn.Dropout(dropout),
    )

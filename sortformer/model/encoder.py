"""The encoder: subsampling, then Conformer or Transformer blocks."""

import math

import torch
from torch import Tensor, nn

from sortformer.config.model import EncoderConfig
from sortformer.layers import ConformerBlock, DepthwiseStriding, FrameStacking, TransformerBlock

__all__ = ["Encoder"]


class Encoder(nn.Module):
    """From log-mel features to one embedding for every 80 ms.

    ``pre_encode`` and ``encode`` are apart because streaming cuts between them: what a stream remembers of the past are
    the outputs of ``pre_encode``, which know nothing of their neighbours farther than 70 ms. ``silence`` (D,), if it is
    learned, is such an output for silence.
    """

    def __init__(self, num_mels: int, config: EncoderConfig) -> None:
        super().__init__()
        if config.subsampling == "dw_striding":
            self.pre_encode = DepthwiseStriding(num_mels, config.dim, config.subsampling_channels)
        else:
            self.pre_encode = FrameStacking(num_mels, config.dim)
        self.silence = nn.Parameter(torch.zeros(config.dim)) if config.learned_silence else None
        self.scale = math.sqrt(config.dim) if config.input_scale else 1.0
        self.input_dropout = nn.Dropout(config.dropout)
        if config.kind == "conformer":
            self.blocks = nn.ModuleList(
                ConformerBlock(
                    config.dim,
                    config.heads,
                    config.ff_dim,
                    config.conv_kernel,
                    conv_norm=config.conv_norm,
                    attention=attention,
                    depth=depth,
                    dropout=config.dropout,
                    residual=config.residual,
                )
                for depth, attention in enumerate(config.layer_attention)
            )
            self.input_norm = self.norm = None
        else:
            self.blocks = nn.ModuleList(
                TransformerBlock(
                    config.dim,
                    config.heads,
                    config.ff_dim,
                    norm="pre",
                    activation="gelu",
                    attention=attention,
                    depth=depth,
                    dropout=config.dropout,
                    residual=config.residual,
                    qkv_bias=False,
                )
                for depth, attention in enumerate(config.layer_attention)
            )
            self.input_norm, self.norm = nn.LayerNorm(config.dim), nn.LayerNorm(config.dim)

    def encode(self, emb: Tensor, valid: Tensor | None = None) -> Tensor:
        """Run the blocks over pre-encoded frames ``emb`` (B, T, D) of which ``valid`` (B, T) count; (B, T, D)."""
        x = emb * self.scale
        if self.input_norm is not None:
            x = self.input_norm(x)
        x = self.input_dropout(x)
        for block in self.blocks:
            x = block(x, valid)
        return x if self.norm is None else self.norm(x)

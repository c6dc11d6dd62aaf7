"""The encoder: subsampling, then Conformer or Transformer blocks."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from sortformer.attention import LayerStep
from sortformer.bandwidth import is_narrow, sounding
from sortformer.config.model import EncoderConfig
from sortformer.features import narrow_bands
from sortformer.layers import ConformerBlock, DepthwiseStriding, FrameStacking, TransformerBlock, build_stack
from sortformer.masks import length_mask

__all__ = ["Encoder"]


class Encoder(nn.Module):
    """From log-mel features to one embedding per 80 ms.

    ``subsample`` and the blocks, ``forward``, are separate because the state of a stream is kept between them: it holds
    outputs of ``subsample``, which depend on at most 70 ms before and after their start. ``silence`` (D,), if learned,
    is such an output for silence.
    """

    def __init__(self, num_mels: int, config: EncoderConfig) -> None:
        super().__init__()
        if config.subsampling == "dw_striding":
            self.pre_encode = DepthwiseStriding(num_mels, config.dim, config.subsampling_channels)
        else:
            self.pre_encode = FrameStacking(num_mels, config.dim)
        self.narrowband = None
        if config.narrowband_channels is not None:
            self.narrowband = DepthwiseStriding(narrow_bands(num_mels), config.dim, config.narrowband_channels)
        self.silence = nn.Parameter(torch.zeros(config.dim)) if config.learned_silence else None
        self.scale = math.sqrt(config.dim) if config.input_scale else 1.0
        self.input_dropout = nn.Dropout(config.dropout)
        self.blocks = build_stack(config, _kind(config))
        self.input_norm = self.norm = None
        if config.kind == "transformer":
            self.input_norm, self.norm = nn.LayerNorm(config.dim), nn.LayerNorm(config.dim)

    def subsample(self, feats: Tensor, lengths: Tensor, narrow: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return frames of 80 ms, (B, ceil(T / 8), D), from features (B, T, M), and the lengths (B,) likewise.

        ``narrow`` (B,) marks rows recorded at 8 kHz, for models with a separate subsampling for these (None: detect
        them from the features, which are then taken for whole recordings).
        """
        feats = feats.to(next(self.parameters()).dtype)
        if self.narrowband is None:
            return self.pre_encode(feats, lengths)
        if narrow is None:
            narrow = is_narrow(sounding(feats, length_mask(lengths, feats.shape[1])))
        # In training both run for all rows, so that every weight has a gradient in each of several processes.
        if not self.training and bool(narrow.all()):
            return self.narrowband(_lower(feats), lengths)
        if not (self.training or bool(narrow.any())):
            return self.pre_encode(feats, lengths)
        return self.subsample_both(feats, lengths, narrow)

    def subsample_both(self, feats: Tensor, lengths: Tensor, narrow: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output of ``subsample`` in a model with two subsamplings, by running both for all rows."""
        if self.narrowband is None:
            raise ValueError("this model has one subsampling for all recordings")
        emb, frames = self.pre_encode(feats, lengths)
        return torch.where(narrow[:, None, None], self.narrowband(_lower(feats), lengths)[0], emb), frames

    def forward(self, emb: Tensor, valid: Tensor, states: tuple[Any, ...] | None = None) -> LayerStep:
        """Run the blocks over pre-encoded frames ``emb`` (B, T, D) of which ``valid`` (B, T) count.

        Given ``states``, the frames are the next chunk; otherwise a whole recording.
        """
        x = emb * self.scale
        if self.input_norm is not None:
            x = self.input_norm(x)
        step = self.blocks(self.input_dropout(x), valid, states)
        return step if self.norm is None else replace(step, out=self.norm(step.out))


def _lower(feats: Tensor) -> Tensor:
    return feats[..., : narrow_bands(feats.shape[2])]


def _kind(config: EncoderConfig) -> Callable[..., nn.Module]:
    if config.kind == "transformer":
        return partial(TransformerBlock, norm="pre", activation="gelu", qkv_bias=False)
    return partial(
        ConformerBlock, conv_kernel=config.conv_kernel, conv_norm=config.conv_norm, conv_causal=config.conv_causal
    )

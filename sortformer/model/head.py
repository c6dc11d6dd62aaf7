"""The SortFormer head: Transformer blocks, estimates between them, and the speaker logits at their end."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from sortformer.attention import LayerStep, add_losses
from sortformer.config.attention import AttentionConfig
from sortformer.config.model import HeadConfig
from sortformer.layers import SubframeUpsampling, TransformerBlock, build_stack
from sortformer.model.permutation import PermutationEncoding

__all__ = ["Head", "HeadStep"]


@dataclass(frozen=True, slots=True)
class HeadStep:
    """What the head makes of a recording."""

    logits: Tensor  # (B, T * upsampling, S)
    estimates: tuple[Tensor, ...]  # each (B, T, S), by ``estimate_layers``
    losses: Mapping[str, Tensor]


class Head(nn.Module):
    """From encoder embeddings to one logit per frame and slot, slots in order of arrival."""

    def __init__(self, input_dim: int, config: HeadConfig) -> None:
        super().__init__()
        self.estimate_layers = config.estimate_layers
        self.input = nn.Linear(input_dim, config.dim)
        self.blocks = build_stack(config.depth, config.dim, config.layer_attention, partial(_block, config))
        self.estimates = nn.ModuleList(nn.Linear(config.dim, config.num_slots) for _ in config.estimate_layers)
        self.encodings = nn.ModuleList(
            PermutationEncoding(config) for _ in config.estimate_layers if config.permutation != "none"
        )
        self.upsampling = SubframeUpsampling(config.dim, config.upsampling) if config.upsampling > 1 else None
        self.dropout = nn.Dropout(config.dropout)
        self.hidden = nn.Linear(config.dim, config.dim)
        self.out = nn.Linear(config.dim, config.num_slots)

    def forward(self, emb: Tensor, valid: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the logits and the estimates, as ``step`` does."""
        step = self.step(emb, valid)
        return step.logits, step.estimates

    def step(self, emb: Tensor, valid: Tensor) -> HeadStep:
        """Take embeddings ``emb`` (B, T, D) of which ``valid`` (B, T) count."""
        stretches, estimates = [self.stretch(0, self.input(emb), valid)], []
        for index in range(len(self.estimates)):
            estimate, x = self.estimate(index, stretches[-1].out, valid)
            estimates.append(estimate)
            stretches.append(self.stretch(index + 1, x, valid))
        losses = add_losses(*(stretch.losses for stretch in stretches))
        return HeadStep(self.output(stretches[-1].out, valid), tuple(estimates), losses)

    def stretch(self, index: int, x: Tensor, valid: Tensor) -> LayerStep:
        """Run the blocks before the first estimate (0), or those behind the ``index``-th up to the next."""
        borders = (0, *self.estimate_layers, self.blocks.layers)
        return self.blocks(x, valid, borders[index], borders[index + 1])

    def estimate(self, index: int, x: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """Return an estimate's logits (B, T, S), and ``x`` (B, T, D) with their permutation encoding."""
        logits = self.estimates[index](x)
        return logits, x + self.encodings[index](logits, valid) if self.encodings else x

    def output(self, x: Tensor, valid: Tensor) -> Tensor:
        """Return the logits (B, T * upsampling, S) of the last block's output."""
        if self.upsampling is not None:
            x = self.upsampling(x, valid)
        x = self.hidden(self.dropout(torch.relu(x)))
        return self.out(self.dropout(torch.relu(x)))


def _block(config: HeadConfig, attention: AttentionConfig, depth: int) -> TransformerBlock:
    return TransformerBlock(
        config.dim,
        config.heads,
        config.ff_dim,
        norm=config.norm,
        activation=config.activation,
        attention=attention,
        depth=depth,
        dropout=config.dropout,
        residual=config.residual,
        ff_chunk_frames=config.ff_chunk_frames,
    )

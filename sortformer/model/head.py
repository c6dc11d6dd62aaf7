"""The SortFormer head: Transformer blocks, estimates between them, and the speaker logits at their end."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from sortformer.attention import AttentionState, LayerStep, add_losses
from sortformer.config.model import HeadConfig
from sortformer.layers import SubframeUpsampling, TransformerBlock, build_stack
from sortformer.model.arrival import Arrivals
from sortformer.model.permutation import PermutationEncoding

__all__ = ["Head", "HeadState", "HeadStep"]


@dataclass(frozen=True, slots=True)
class HeadState:
    """The state of the head between chunks."""

    blocks: tuple[AttentionState, ...]
    arrivals: tuple[Arrivals | None, ...]
    """Of the classes of each estimate; None for the design that does not sort them."""


@dataclass(frozen=True, slots=True)
class HeadStep:
    """The output of the head for a chunk or a whole recording."""

    logits: Tensor  # (B, T * upsampling, S)
    estimates: tuple[Tensor, ...]  # each (B, T, S), by ``estimate_layers``
    state: HeadState
    losses: Mapping[str, Tensor]


class Head(nn.Module):
    """From encoder embeddings to one logit per frame and slot, slots in order of arrival."""

    def __init__(self, input_dim: int, config: HeadConfig) -> None:
        super().__init__()
        self.estimate_layers = config.estimate_layers
        self.input = nn.Linear(input_dim, config.dim)
        self.blocks = build_stack(config, partial(TransformerBlock, norm=config.norm, activation=config.activation))
        self.estimates = nn.ModuleList(nn.Linear(config.dim, config.num_slots) for _ in config.estimate_layers)
        self.encodings = nn.ModuleList(
            PermutationEncoding(config) for _ in config.estimate_layers if config.permutation != "none"
        )
        self.upsampling = SubframeUpsampling(config.dim, config.upsampling) if config.upsampling > 1 else None
        self.dropout = nn.Dropout(config.dropout)
        self.hidden = nn.Linear(config.dim, config.dim)
        self.out = nn.Linear(config.dim, config.num_slots)

    def init_state(self, emb: Tensor) -> HeadState:
        """Return the state before the first frame, for embeddings like ``emb`` (B, T, D)."""
        x = self.input(emb[:, :0])
        classes = x.new_zeros(len(x), 0, self.out.out_features)
        encodings: list[Any] = list(self.encodings)
        return HeadState(self.blocks.init_state(x), tuple(encoding.init_state(classes) for encoding in encodings))

    def forward(self, emb: Tensor, valid: Tensor, state: HeadState | None = None) -> HeadStep:
        """Run the head on the next chunk ``emb`` (B, T, D), of which ``valid`` (B, T) count.

        Without a state, ``emb`` is a whole recording.
        """
        blocks = None if state is None else state.blocks
        sections, estimates, arrivals = [self.section(0, self.input(emb), valid, blocks)], [], []
        for index in range(len(self.estimates)):
            past = None if state is None or not state.arrivals else state.arrivals[index]
            estimate, x, now = self.estimate(index, sections[-1].out, valid, past)
            estimates.append(estimate)
            arrivals.append(now)
            sections.append(self.section(index + 1, x, valid, blocks))
        after = HeadState(
            tuple(layer for section in sections for layer in section.state or ()),
            tuple(arrivals) if self.encodings else (),
        )
        losses = add_losses(*(section.losses for section in sections))
        return HeadStep(self.output(sections[-1].out, valid), tuple(estimates), after, losses)

    def section(self, index: int, x: Tensor, valid: Tensor, states: tuple[Any, ...] | None = None) -> LayerStep:
        """Run the blocks before the first estimate (0), or those behind the ``index``-th up to the next."""
        borders = (0, *self.estimate_layers, self.blocks.layers)
        return self.blocks(x, valid, states, borders[index], borders[index + 1])

    def estimate(
        self, index: int, x: Tensor, valid: Tensor, past: Arrivals | None = None
    ) -> tuple[Tensor, Tensor, Arrivals | None]:
        """Return an estimate's logits (B, T, S), ``x`` (B, T, D) with their encoding, and the next arrivals.

        Without a ``past`` it is a whole recording.
        """
        logits = self.estimates[index](x)
        if not self.encodings:
            return logits, x, None
        encoded, now = self.encodings[index](logits, valid, past)
        return logits, x + encoded, now

    def output(self, x: Tensor, valid: Tensor) -> Tensor:
        """Return the logits (B, T * upsampling, S) of the last block's output."""
        if self.upsampling is not None:
            x = self.upsampling(x, valid)
        x = self.hidden(self.dropout(torch.relu(x)))
        return self.out(self.dropout(torch.relu(x)))

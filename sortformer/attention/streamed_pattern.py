"""Sparse attention chunk by chunk: the state holds just the frames that later queries may attend to."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from sortformer.attention.pattern import Pattern, PatternAttention
from sortformer.attention.protocol import Context, RecurrentCore
from sortformer.attention.softmax import TILE_FRAMES, attend

__all__ = ["PatternState", "StreamedPattern", "StreamedPatternAttention"]


class StreamedPattern(Pattern, Protocol):
    """A pattern whose causal half does not need all past frames."""

    def needed(self, j: Tensor, coming: Tensor) -> Tensor:
        """Return, broadcast, whether any query of index ``coming`` or later attends to the key ``j``."""
        ...


@dataclass(frozen=True, slots=True)
class PatternState:
    """The frames that may still be attended to, oldest first.

    Rows at different positions of their streams keep different numbers of frames; invalid entries are padding.
    """

    key: Tensor  # (B, H, n, d)
    value: Tensor  # (B, H, n, d)
    at: Tensor  # (B, n) their indices
    valid: Tensor  # (B, n)
    coming: Tensor  # (B,) the index of the next frame


class StreamedPatternAttention(PatternAttention, RecurrentCore):
    """The causal half of a pattern, whole or chunk by chunk."""

    pattern: StreamedPattern

    def init_state(self, query: Tensor) -> PatternState:
        none, start = query[:, :, :0], torch.zeros(query.shape[0], dtype=torch.int64, device=query.device)
        at = start.new_zeros(len(start), 0)
        return PatternState(none, none, at, at.bool(), start)

    def step(
        self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: PatternState
    ) -> tuple[Tensor, PatternState]:
        now = state.coming[:, None] + torch.arange(key.shape[2], device=key.device)
        valid = torch.cat((state.valid, context.valid), dim=1)
        key, value = torch.cat((state.key, key), dim=2), torch.cat((state.value, value), dim=2)
        at = torch.cat((state.at, now), dim=1)
        out, j = [], at[:, None]
        for asking, where in zip(query.split(TILE_FRAMES, dim=2), now.split(TILE_FRAMES, dim=1), strict=True):
            i = where[:, :, None]
            allowed = self.pattern.allowed(i, j) & (j <= i)
            out.append(attend(asking, key, value, allowed[:, None] & valid[:, None, None]))
        coming = state.coming + now.shape[1]
        kept = valid & self.pattern.needed(at, coming[:, None])
        first = (~kept).int().argsort(dim=1, stable=True)[:, : int(kept.sum(dim=1).max())]
        index = first[:, None, :, None].expand(-1, key.shape[1], -1, key.shape[3])
        return torch.cat(out, dim=2), PatternState(
            key.gather(2, index), value.gather(2, index), at.gather(1, first), kept.gather(1, first), coming
        )

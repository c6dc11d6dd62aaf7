"""Sparse attention by a pattern of pairs, computed one tile of queries at a time: memory is linear in the length."""

from typing import Protocol

import torch
from torch import Tensor

from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import attend, tiles

__all__ = ["Pattern", "PatternAttention"]


class Pattern(Protocol):
    """The allowed pairs of queries and keys, before validity and causality are applied."""

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        """Return (t, s), True where the query with index ``i`` (t, 1) attends to the key with index ``j`` (1, s)."""
        ...

    def columns(self, first: int, last: int, frames: int) -> Tensor | None:
        """Return the sorted indices (s,) of all keys that queries ``first`` to ``last - 1`` need (None: all)."""
        ...


class PatternAttention(Core):
    """Softmax attention over the pairs of a pattern; indices count from the oldest frame of a memory."""

    def __init__(self, pattern: Pattern, causal: bool) -> None:
        super().__init__()
        self.pattern = pattern
        self.causal = causal

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        frames, mixed = key.shape[2], []
        every = torch.arange(frames, device=query.device)
        for rows in tiles(query.shape[2]):
            first, last = context.past + rows.start, context.past + rows.stop
            columns = self.pattern.columns(first, last, frames)
            columns = every if columns is None else columns.to(query.device)
            if self.causal:
                columns = columns[columns < last]
            i, j = every[first:last, None], columns[None]
            allowed = self.pattern.allowed(i, j)
            if self.causal:
                allowed = allowed & (j <= i)
            valid, bias, factor = context.part(rows, columns)
            keys, values, pairs = key[:, :, columns], value[:, :, columns], allowed & valid[:, None, None]
            mixed.append(attend(query[:, :, rows], keys, values, pairs, bias, factor))
        return torch.cat(mixed, dim=2)

"""Combiner-Hierarchical: a tree whose causal form can stream, since a group is computed from its parts alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sortformer.attention.combiner_tree import CombinerTree
from sortformer.attention.protocol import Context, RecurrentCore
from sortformer.attention.softmax import expectation

__all__ = ["CombinerHierarchical", "Parts", "TreeState"]


@dataclass(frozen=True, slots=True)
class Parts:
    """Complete groups that are not yet merged into a larger one, oldest first."""

    key: Tensor  # (B, H, n, d)
    query: Tensor  # (B, H, n, d)
    value: Tensor  # (B, H, n, d)
    count: Tensor  # (B, 1, n) their numbers of valid frames

    def then(self, other: "Parts") -> "Parts":
        """Return these groups with others appended."""
        mine, more = ((x.key, x.query, x.value, x.count) for x in (self, other))
        return Parts(*(torch.cat(pair, dim=2) for pair in zip(mine, more, strict=True)))

    def part(self, where: slice) -> "Parts":
        """Return the groups of a slice."""
        return Parts(*(x[:, :, where] for x in (self.key, self.query, self.value, self.count)))


@dataclass(frozen=True, slots=True)
class TreeState:
    """The groups before the current block, and the current block so far: about s + fan out * log(L / s) entries."""

    levels: tuple[Parts, ...]
    """Blocks, groups of blocks, and so on: fewer than ``fan_out`` of each."""
    open: Parts
    """The frames of the current block."""


class CombinerHierarchical(CombinerTree, RecurrentCore):
    """Ren et al., arXiv 2107.05768, section 3.1, "further hierarchical decomposition"; see :class:`CombinerTree`."""

    def __init__(self, head_dim: int, block: int, fan_out: int, pool: str, causal: bool) -> None:
        super().__init__(head_dim, block, fan_out, pool, nested=True, causal=causal)

    def init_state(self, query: Tensor) -> TreeState:
        none = query[:, :, :0]
        nothing = Parts(none, none, none, none[:, :1, :, 0].long())
        return TreeState((nothing,), nothing)

    def step(
        self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: TreeState
    ) -> tuple[Tensor, TreeState]:
        """Return (B, H, T, d), block by block, and the next state."""
        frames = Parts(key, query, value, context.valid[:, None].long())
        out, start = [], 0
        while start < query.shape[2]:
            begun = state.open.key.shape[2]
            piece = slice(start, start + self.block - begun)
            open_block = state.open.then(frames.part(piece))
            out.append(self._read(query[:, :, piece], begun, open_block, state.levels))
            state, start = self._closed(state.levels, open_block), piece.stop
        return torch.cat(out, dim=2) if out else query, state

    def _read(self, query: Tensor, begun: int, open_block: Parts, levels: tuple[Parts, ...]) -> Tensor:
        """Attend from the frames of a block, from frame ``begun`` on, to the block and to all groups before it."""
        frames = query.shape[2]
        within = torch.ones(frames, begun + frames, dtype=torch.bool, device=query.device).tril(begun)
        seen = [within & (open_block.count > 0)[:, :, None]]
        seen += [(level.count > 0)[:, :, None].expand(-1, -1, frames, -1) for level in levels]
        key, value = (torch.cat([getattr(x, name) for x in (open_block, *levels)], dim=2) for name in ("key", "value"))
        return expectation(query, key, value, torch.cat(seen, dim=-1))

    def _closed(self, levels: tuple[Parts, ...], open_block: Parts) -> TreeState:
        """Return the next state: a full block or level is merged into one group of the next level."""
        if open_block.key.shape[2] < self.block:
            return TreeState(levels, open_block)
        key, query = self.abstraction.elements(open_block.key, open_block.query)
        carried, after = self._group(key, query, open_block), []
        for number, level in enumerate(levels):
            level = level.then(carried)
            if level.key.shape[2] < self.fan_out:
                return TreeState((*after, level, *levels[number + 1 :]), open_block.part(slice(0)))
            after.append(level.part(slice(0)))
            carried = self._group(level.key, level.query, level)
        return TreeState((*after, carried), open_block.part(slice(0)))

    def _group(self, key: Tensor, query: Tensor, parts: Parts) -> Parts:
        """Merge parts, with abstract keys and queries (B, H, n, d), into one group."""
        keys, queries = (self._pooled(x, parts.count)[:, :, None] for x in (key, query))
        value = expectation(queries, parts.key, parts.value, (parts.count > 0)[:, :, None])
        return Parts(keys, queries, value, parts.count.sum(dim=2, keepdim=True))

    def _pooled(self, x: Tensor, count: Tensor) -> Tensor:
        """Return the pool (B, H, d) of all frames of parts, from the pools (B, H, n, d) and sizes of the parts."""
        if self.abstraction.pool == "mean":
            return (x * count[..., None]).sum(dim=2) / count.sum(dim=2).clamp(min=1)[..., None]
        return self.abstraction.pooled(x, count > 0)

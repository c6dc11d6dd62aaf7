"""Combiner-Fixed: own block directly, each other block through its abstraction."""

import sys

import torch
from torch import Tensor

from sortformer.attention.blocks import cut, fitting, joined, pairs_within
from sortformer.attention.combiner import Terms, join
from sortformer.attention.combiner_hierarchical import CombinerHierarchical
from sortformer.attention.protocol import Context
from sortformer.attention.softmax import scores

__all__ = ["CombinerFixed"]

_TILE_BLOCKS = 8


class CombinerFixed(CombinerHierarchical):
    """Ren et al., arXiv 2107.05768, section 4.1: causal as there, or with later blocks as groups too.

    A tree whose only group is its root, with all blocks: it streams as others do, but takes whole recordings in tiles.
    """

    def __init__(self, head_dim: int, block: int, pool: str, causal: bool) -> None:
        super().__init__(head_dim, block, sys.maxsize, pool, causal)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        frames, there = query.shape[2], context.valid[:, None]
        block = fitting(self.block, frames)
        query, key, value, there = (cut(x, block) for x in (query, key, value, there))
        groups = self.abstraction(key, query, value, there)
        number = torch.arange(query.shape[2], device=query.device)
        foreign = number[:, None] > number if self.causal else number[:, None] != number
        within = pairs_within(block, self.causal, query.device)
        tiles = []
        for start in range(0, len(number), _TILE_BLOCKS):
            rows = slice(start, start + _TILE_BLOCKS)
            asked = query[:, :, rows]
            direct = Terms(scores(asked, key[:, :, rows]), within & there[:, :, rows, None], value[:, :, rows])
            through = Terms(
                scores(asked, groups.key[:, :, None]),
                (foreign[rows] & groups.valid[:, :, None])[:, :, :, None],
                groups.value[:, :, None],
            )
            tiles.append(join([direct, through]))
        return joined(torch.cat(tiles, dim=2), frames)

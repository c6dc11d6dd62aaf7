"""Combiner-Fixed: the own block directly, each other block through its abstraction."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sortformer.attention.combiner import Abstraction, Groups, Terms, join
from sortformer.attention.full import scores, validity
from sortformer.attention.protocol import Context, RecurrentCore

__all__ = ["CombinerFixed", "CombinerState"]

_TILE_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class CombinerState:
    """The blocks that are over, as abstractions, and the frames of the one that is not."""

    key: Tensor  # (B, H, n, d) of the groups
    value: Tensor  # (B, H, n, d)
    valid: Tensor  # (B, n)
    open_query: Tensor  # (B, H, t, d) with t < block
    open_key: Tensor  # (B, H, t, d)
    open_value: Tensor  # (B, H, t, d)
    open_valid: Tensor  # (B, t)


class CombinerFixed(RecurrentCore):
    """Ren et al., arXiv 2107.05768, section 4.1: causal as there, or with the blocks after one's own as groups too."""

    def __init__(self, head_dim: int, block: int, pool: str, causal: bool) -> None:
        super().__init__()
        self.block = block
        self.causal = causal
        self.abstraction = Abstraction(head_dim, pool)

    def init_state(self, query: Tensor) -> CombinerState:
        """Return the state of a stream without frames."""
        none, nothing = query[:, :, :0], torch.zeros(query.shape[0], 0, dtype=torch.bool, device=query.device)
        return CombinerState(none, none, nothing, none, none, none, nothing)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d); see :class:`Core`."""
        return self._run(query, key, value, validity(key, context.valid), None)[0]

    def step(
        self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: CombinerState
    ) -> tuple[Tensor, CombinerState]:
        """Return (B, H, T, d) and the state with the blocks that ended."""
        begun = state.open_key.shape[2]
        query, key, value = (
            torch.cat(pair, dim=2)
            for pair in ((state.open_query, query), (state.open_key, key), (state.open_value, value))
        )
        valid = torch.cat((state.open_valid, validity(key[:, :, begun:], context.valid)), dim=1)
        past = Groups(state.key, state.value, state.valid[:, None])
        out, groups = self._run(query, key, value, valid, past)
        done = key.shape[2] // self.block
        rest = done * self.block
        return out[:, :, begun:], CombinerState(
            torch.cat((state.key, groups.key[:, :, :done]), dim=2),
            torch.cat((state.value, groups.value[:, :, :done]), dim=2),
            torch.cat((state.valid, groups.valid[:, 0, :done]), dim=1),
            query[:, :, rest:],
            key[:, :, rest:],
            value[:, :, rest:],
            valid[:, rest:],
        )

    def _run(
        self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor, past: Groups | None
    ) -> tuple[Tensor, Groups]:
        """Return (B, H, T, d) and the groups of these frames; those of the ``past`` count for all of them."""
        frames = query.shape[2]
        tail = -frames % self.block
        query, key, value = (
            nn.functional.pad(x, (0, 0, 0, tail)).unflatten(2, (-1, self.block)) for x in (query, key, value)
        )
        there = nn.functional.pad(valid, (0, tail)).unflatten(1, (-1, self.block))[:, None]  # (B, 1, n, s)
        own = groups = self.abstraction(key, query, value, there)
        blocks = query.shape[2]
        number = torch.arange(blocks, device=query.device)
        earlier = 0
        if past is not None:
            earlier = past.key.shape[2]
            groups = Groups(
                torch.cat((past.key, own.key), dim=2),
                torch.cat((past.value, own.value), dim=2),
                torch.cat((past.valid, own.valid), dim=2),
            )
        foreign = number[:, None] > number if self.causal else number[:, None] != number
        foreign = nn.functional.pad(foreign, (earlier, 0), value=True)  # (n, earlier + n)
        within = torch.ones(self.block, self.block, dtype=torch.bool, device=query.device)
        within = within.tril() if self.causal else within
        tiles = []
        for start in range(0, blocks, _TILE_BLOCKS):
            rows = slice(start, start + _TILE_BLOCKS)
            asked = query[:, :, rows]
            direct = Terms(scores(asked, key[:, :, rows]), within & there[:, :, rows, None], value[:, :, rows])
            through = Terms(
                scores(asked, groups.key[:, :, None]),
                (foreign[rows] & groups.valid[:, :, None])[:, :, :, None],
                groups.value[:, :, None],
            )
            tiles.append(join([direct, through]))
        return torch.cat(tiles, dim=2).flatten(2, 3)[:, :, :frames], own

"""Combiner-Axial: time as a grid; one or both axes attended to directly, the rest through abstractions."""

import torch
from torch import Tensor, nn

from sortformer.attention.blocks import cut, fitting, joined, pairs_within
from sortformer.attention.combiner import Abstraction, Groups, Terms, join
from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import expectation, scores

__all__ = ["CombinerAxial", "CombinerMixture"]

_TILE_FRAMES = 512


class CombinerAxial(Core):
    """Ren et al., arXiv 2107.05768, section 4.3; if not causal, groups lie on both sides of the query.

    - "vertical": own row and column directly; of each other column, the part above the query's row and the part below
      it as groups;
    - "horizontal": own row and column directly; each other row, without the query's column, as a group;
    - "rowmajor": own row directly; each other row as a group, abstracted by the attention, within that row, of its
      frame in the query's column;
    - "joint": own row and column directly, and the groups of "vertical" and "horizontal", all in one softmax: the
      mixture of the authors' code (there a row is two groups, before and after the query's column).
    """

    def __init__(self, head_dim: int, row: int, plan: str, pool: str, causal: bool) -> None:
        super().__init__()
        self.row = row
        self.plan = plan
        self.causal = causal
        self.abstraction = Abstraction(head_dim, pool)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        frames, there = query.shape[2], context.valid[:, None]
        row = fitting(self.row, frames)
        query, key, value, there = (cut(x, row) for x in (query, key, value, there))
        query = query * there[..., None]  # padding must not enter the pooled queries of groups
        by_row = None if self.plan == "vertical" else self._row_groups(query, key, value, there)
        tiles = []
        step = max(1, _TILE_FRAMES // row)
        for first in range(0, query.shape[2], step):
            rows = slice(first, first + step)
            asked = query[:, :, rows]
            terms = [self._own_rows(asked, key[:, :, rows], value[:, :, rows], there[:, :, rows])]
            if self.plan != "rowmajor":
                terms.append(self._other_rows(asked, Groups(key, value, there), first))
            if by_row is not None:
                terms.append(self._other_rows(asked, by_row, first))
            if self.plan in ("vertical", "joint"):
                terms.extend(self._other_columns(asked, key, query, value, there, rows))
            tiles.append(join(terms))
        return joined(torch.cat(tiles, dim=2), frames)

    def _own_rows(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor) -> Terms:
        allowed = pairs_within(query.shape[3], self.causal, query.device) & valid[..., None, :]
        return Terms(scores(query, key), allowed, value)

    def _other_rows(self, query: Tensor, groups: Groups, first: int) -> Terms:
        """Return the terms of the groups, or single keys, (B, H, n, m) of other rows in each query's own column."""
        by_row = scores(query.transpose(2, 3), groups.key.transpose(2, 3)).transpose(2, 3)
        mine = torch.arange(first, first + query.shape[2], device=query.device)[:, None]
        every = torch.arange(groups.key.shape[2], device=query.device)
        foreign = every < mine if self.causal else every != mine  # (r, n)
        allowed = foreign[:, None] & groups.valid.transpose(2, 3)[:, :, None]
        return Terms(by_row, allowed, groups.value.transpose(2, 3), by_column=True)

    def _row_groups(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor) -> Groups:
        """Return one group (B, H, n, m, d) for each row and each column of queries."""
        others = valid[..., None, :]
        if self.plan == "rowmajor":
            keys, values = (expectation(query, key, x, others) for x in (key, value))
            return Groups(keys, values, others.any(-1).expand(valid.shape))
        others = others & ~torch.eye(query.shape[3], dtype=torch.bool, device=query.device)
        keys, queries = (self.abstraction.others(x, valid) for x in self.abstraction.elements(key, query))
        return Groups(keys, expectation(queries, key, value, others), others.any(-1))

    def _other_columns(
        self, asked: Tensor, key: Tensor, query: Tensor, value: Tensor, valid: Tensor, rows: slice
    ) -> list[Terms]:
        """Return the terms of each other column's parts above the row of a query and, if not causal, below it."""
        pooled = [x.transpose(2, 3) for x in self.abstraction.elements(key, query)]  # (B, H, m, n, d)
        key, value, there = key.transpose(2, 3), value.transpose(2, 3), valid.transpose(2, 3)
        above = torch.ones(key.shape[3], key.shape[3], dtype=torch.bool, device=key.device).tril(-1)
        foreign = ~torch.eye(query.shape[3], dtype=torch.bool, device=key.device)
        sides = [([self.abstraction.before(x, there) for x in pooled], above)]
        if not self.causal:
            after = [self.abstraction.before(x.flip(3), there.flip(3)).flip(3) for x in pooled]
            sides.append((after, above.T))
        terms = []
        for (keys, queries), seen in sides:
            allowed = seen[rows] & there[..., None, :]  # (B, 1, m, r, n)
            mixed = expectation(queries[:, :, :, rows], key, value, allowed)
            columns = [x.transpose(2, 3) for x in (keys[:, :, :, rows], mixed, allowed.any(-1))]
            terms.append(Terms(scores(asked, columns[0]), foreign & columns[2][..., None, :], columns[1]))
        return terms


class CombinerMixture(Core):
    """The mean of several plans: Ren et al., arXiv 2107.05768, section 3.3."""

    def __init__(self, plans: list[Core]) -> None:
        super().__init__()
        self.plans = nn.ModuleList(plans)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        return torch.stack([plan(query, key, value, context) for plan in self.plans]).mean(dim=0)

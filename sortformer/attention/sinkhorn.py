"""Sparse Sinkhorn attention: a block attends to itself and to the block that soft sorting assigns to it."""

import torch
from torch import Tensor

from sortformer.attention.blocks import cut, fitting, joined, pairs_within
from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import expectation, masked
from sortformer.precision import wide

__all__ = ["SinkhornAttention", "sinkhorn"]


class SinkhornAttention(Core):
    """Tay et al., arXiv 2002.11296, section 3: blocks are sorted by the dot products of their means, without noise.

    A sorted block is a weighted sum of blocks, frame by frame, in which frames that are not valid are zero. One of its
    frames may be attended to if it is valid in any of these blocks. With ``cut`` all frames attend to the first
    ``cut`` sorted blocks only ("SortCut").

    If causal, only earlier blocks are sorted into the place of a block, by the mean of the queries up to its first
    one, and sums over blocks run up to that block only.
    """

    def __init__(self, block: int, iterations: int, temperature: float, cut: int, causal: bool) -> None:
        super().__init__()
        self.block = block
        self.iterations = iterations
        self.temperature = temperature
        self.cut = cut
        self.causal = causal

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        frames = query.shape[2]
        block = fitting(self.block, frames)
        there = cut(context.valid[:, None], block)
        query, key, value = (cut(x, block) * there[..., None] for x in (query, key, value))
        some = there.any(-1)
        pairs = some[..., None] & some[..., None, :]  # (B, 1, n, n)
        if self.causal:
            pairs = pairs.tril(-1)
        fit = self._asking(query, there) @ _means(key.sum(dim=3), there.sum(dim=-1)).transpose(-1, -2)
        logits = fit * query.shape[-1] ** -0.5 / self.temperature
        order = sinkhorn(logits, pairs, self.iterations, causal=self.causal)
        if self.cut:
            order = order[:, :, : self.cut]
        keys, values = (torch.einsum("bhij,bhjsd->bhisd", order, x) for x in (key, value))
        # A place in a sorted block is valid if any block that may be sorted into it has a valid frame in that place.
        seen = pairs.to(query.dtype) @ there.to(query.dtype) > 0
        if self.cut:
            keys, values, seen = keys.flatten(2, 3), values.flatten(2, 3), seen[:, :, : self.cut].flatten(2, 3)
            return expectation(query.flatten(2, 3), keys, values, seen[:, :, None])[:, :, :frames]
        keys, values = torch.cat((key, keys), dim=3), torch.cat((value, values), dim=3)
        own = pairs_within(block, self.causal, query.device) & there[..., None, :]
        allowed = torch.cat((own, seen[..., None, :].expand_as(own)), dim=-1)
        return joined(expectation(query, keys, values, allowed), frames)

    def _asking(self, query: Tensor, there: Tensor) -> Tensor:
        """Return the mean query (B, H, n, d) of each block or, if causal, of all frames up to its first."""
        total, count = query.sum(dim=3), there.sum(dim=-1)
        if not self.causal:
            return _means(total, count)
        first = query[:, :, :, 0], there[..., 0]
        return _means(total.cumsum(dim=2) - total + first[0], count.cumsum(dim=-1) - count + first[1].long())


def sinkhorn(logits: Tensor, pairs: Tensor, iterations: int, *, causal: bool = False) -> Tensor:
    """Return exp(logits) (..., n, n) over the allowed ``pairs``, with rows and columns normalised in turn.

    After ``iterations`` columns sum to one exactly, and rows approximately. If ``causal``, an entry is divided by the
    sum of its column up to it, so that no row depends on those below it.
    """
    dtype, logits = logits.dtype, masked(wide(logits), pairs)
    for _ in range(iterations):
        logits = masked(logits - logits.logsumexp(dim=-1, keepdim=True), pairs)
        columns = logits.logcumsumexp(dim=-2) if causal else logits.logsumexp(dim=-2, keepdim=True)
        logits = masked(logits - columns, pairs)
    return logits.exp().to(dtype)


def _means(total: Tensor, count: Tensor) -> Tensor:
    """Divide sums (B, H, n, d) by counts (B, 1, n)."""
    return total / count.clamp(min=1)[..., None]

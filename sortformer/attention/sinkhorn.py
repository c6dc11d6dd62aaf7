"""Sparse Sinkhorn attention: a block attends to itself and to the block that a soft sorting puts in its place."""

import torch
from torch import Tensor, nn

from sortformer.attention.combiner import validity
from sortformer.attention.full import MASKED_SCORE
from sortformer.attention.protocol import Context, Core

__all__ = ["SinkhornAttention", "sinkhorn"]


class SinkhornAttention(Core):
    """Tay et al., arXiv 2002.11296, section 3: the sorting is made of how well the means of blocks fit, without noise.

    A sorted block is a mean of blocks, frame by frame; frames that are not valid are zero in it, and it is attended to
    as a whole where any of its blocks is.
    """

    def __init__(self, block: int, iterations: int, temperature: float) -> None:
        super().__init__()
        self.block = block
        self.iterations = iterations
        self.temperature = temperature

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d); see :class:`Core`."""
        frames = query.shape[2]
        tail = -frames % self.block
        there = nn.functional.pad(validity(key, context.valid), (0, tail)).unflatten(1, (-1, self.block))[:, None]
        query, key, value = (
            nn.functional.pad(x, (0, 0, 0, tail)).unflatten(2, (-1, self.block)) * there[..., None]
            for x in (query, key, value)
        )
        count = there.sum(dim=-1, keepdim=True).clamp(min=1)
        fit = (query.sum(dim=3) / count) @ (key.sum(dim=3) / count).transpose(-1, -2) * query.shape[-1] ** -0.5
        order = sinkhorn(fit / self.temperature, there.any(-1), self.iterations)  # (B, H, n, n)
        keys, values = (torch.cat((x, torch.einsum("bhij,bhjsd->bhisd", order, x)), dim=3) for x in (key, value))
        seen = torch.cat((there, there.any(-1, keepdim=True).expand_as(there)), dim=-1)
        scores = (query @ keys.transpose(-1, -2)) * query.shape[-1] ** -0.5
        weights = scores.masked_fill(~seen[..., None, :], MASKED_SCORE).softmax(dim=-1)
        return (weights @ values).flatten(2, 3)[:, :, :frames]


def sinkhorn(logits: Tensor, valid: Tensor, iterations: int) -> Tensor:
    """Return a matrix (..., n, n) whose valid rows and columns sum to one: exp(logits), normalised in turn.

    What is not ``valid`` (..., n) has neither row nor column. After ``iterations`` turns columns sum to one exactly.
    """
    pairs = valid[..., None] & valid[..., None, :]
    logits = logits.masked_fill(~pairs, MASKED_SCORE)
    for _ in range(iterations):
        for axis in (-1, -2):
            logits = logits - logits.logsumexp(dim=axis, keepdim=True)
            logits = logits.masked_fill(~pairs, MASKED_SCORE)
    return logits.exp()

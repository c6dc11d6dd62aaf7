"""The parts that all Combiners share: nearby keys are attended to directly, the rest through abstractions of groups.

Ren et al., arXiv 2107.05768, equations 7 to 9: a group gets the weight exp(q . k_group), in one softmax with the
keys that are attended to directly, and distributes it by softmax(q_group . k). ``k_group`` and ``q_group`` are pooled
from its keys and queries, so the value of a group does not depend on the query.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sortformer.attention.softmax import expectation, masked, masked_score

__all__ = ["Abstraction", "Groups", "Terms", "join"]


@dataclass(frozen=True, slots=True)
class Groups:
    """The abstract keys and values of groups of frames."""

    key: Tensor  # (B, H, ..., d)
    value: Tensor  # (B, H, ..., d)
    valid: Tensor  # (B, 1, ...) whether the group has a valid frame


@dataclass(frozen=True, slots=True)
class Terms:
    """Some terms of a softmax for queries (B, H, r, T): scores, mask and values."""

    scores: Tensor  # (B, H, r, T, n)
    allowed: Tensor  # broadcast to the scores
    value: Tensor  # (B, H, r or 1, n, d); with ``by_column`` (B, H, T, n, d)
    by_column: bool = False

    def mix(self, weights: Tensor) -> Tensor:
        """Return the sums (B, H, r, T, d) of the values, with weights of the shape of the scores."""
        if self.by_column:
            return (weights.transpose(2, 3) @ self.value).transpose(2, 3)
        return weights @ self.value


class Abstraction(nn.Module):
    """Pooling of a group's keys and queries, or of ReLU(W x) of them (DeepSets, section 5.1), by maximum or mean."""

    def __init__(self, head_dim: int, pool: str) -> None:
        super().__init__()
        self.pool = pool.removeprefix("deepsets_")
        deep = pool.startswith("deepsets")
        self.key_map = nn.Linear(head_dim, head_dim, bias=False) if deep else None
        self.query_map = nn.Linear(head_dim, head_dim, bias=False) if deep else None

    def elements(self, key: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and queries to be pooled, of the same shapes."""
        if self.key_map is None or self.query_map is None:
            return key, query
        return self.key_map(key).relu(), self.query_map(query).relu()

    def forward(self, key: Tensor, query: Tensor, value: Tensor, valid: Tensor) -> Groups:
        """Return groups (B, H, ..., d) of frames (B, H, ..., n, d), of which ``valid`` (B, 1, ..., n) count."""
        keys, queries = (self.pooled(x, valid) for x in self.elements(key, query))
        return Groups(
            keys, expectation(queries[..., None, :], key, value, valid[..., None, :])[..., 0, :], valid.any(-1)
        )

    def pooled(self, x: Tensor, valid: Tensor) -> Tensor:
        """Return (..., d) from elements (..., n, d); zero where none is valid."""
        there = valid[..., None]
        if self.pool == "mean":
            return (x * there).sum(dim=-2) / there.sum(dim=-2).clamp(min=1)
        return masked(x, there).amax(dim=-2) * valid.any(-1)[..., None]

    def before(self, x: Tensor, valid: Tensor) -> Tensor:
        """Return (..., n, d): for each element the pool of all elements before it along the second-last axis."""
        there = valid[..., None]
        if self.pool == "mean":
            summed, count = (x * there).cumsum(dim=-2) - x * there, there.cumsum(dim=-2) - there.long()
            return summed / count.clamp(min=1)
        return _without_none(_largest_before(masked(x, there)))

    def others(self, x: Tensor, valid: Tensor) -> Tensor:
        """Return (..., n, d): for each element the pool of all others."""
        there = valid[..., None]
        if self.pool == "mean":
            count = there.sum(dim=-2, keepdim=True) - there.long()
            return ((x * there).sum(dim=-2, keepdim=True) - x * there) / count.clamp(min=1)
        x = masked(x, there)
        return _without_none(torch.maximum(_largest_before(x), _largest_before(x.flip(-2)).flip(-2)))


def _largest_before(x: Tensor) -> Tensor:
    """Return (..., n, d): for each element the maximum of those before it, ``masked_score`` for the first."""
    return nn.functional.pad(x.cummax(dim=-2).values[..., :-1, :], (0, 0, 1, 0), value=masked_score(x))


def _without_none(largest: Tensor) -> Tensor:
    """Return maxima, with zero for those over no valid element."""
    return largest.masked_fill(largest <= masked_score(largest), 0.0)


def join(terms: list[Terms]) -> Tensor:
    """Return (B, H, r, T, d): one softmax over the scores of all terms, applied to their values."""
    scores = [masked(term.scores, term.allowed) for term in terms]
    weights = torch.cat(scores, dim=-1).softmax(dim=-1).split([each.shape[-1] for each in scores], dim=-1)
    return torch.stack([term.mix(weight) for term, weight in zip(terms, weights, strict=True)]).sum(dim=0)

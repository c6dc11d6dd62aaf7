"""Sparse attention patterns, as in their papers, made symmetric where a paper has only the causal half.

None depends on the length of the recording: frames after the last key of a query do not affect it.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from sortformer.seeds import mixed_seed

__all__ = ["Axial", "BigBird", "BlockLocal", "Dilated", "Fixed", "GlobalLocal", "Logsparse", "Strided", "random_blocks"]


def _range(first: int, last: int, frames: int) -> Tensor:
    return torch.arange(max(0, first), min(frames, last))


@dataclass(frozen=True, slots=True)
class BlockLocal:
    """Blocks attend to themselves and to ``neighbours`` on each side: Parmar et al., arXiv 1802.05751, section 3.2."""

    block: int
    neighbours: int

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        return (i // self.block - j // self.block).abs() <= self.neighbours

    def columns(self, first: int, last: int, frames: int) -> Tensor:
        before, after = first // self.block - self.neighbours, (last - 1) // self.block + self.neighbours + 1
        return _range(before * self.block, after * self.block, frames)

    def needed(self, j: Tensor, coming: Tensor) -> Tensor:
        return j // self.block + self.neighbours >= coming // self.block


@dataclass(frozen=True, slots=True)
class Strided:
    """The ``stride`` frames on each side, and all at its multiples: Child et al., arXiv 1904.10509, section 4.3."""

    stride: int

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        return ((i - j).abs() <= self.stride) | ((i - j) % self.stride == 0)

    def columns(self, first: int, last: int, frames: int) -> None:
        del first, last, frames


@dataclass(frozen=True, slots=True)
class Fixed:
    """Own block and the last ``summary`` frames of every block: Child et al., arXiv 1904.10509, section 4.3."""

    block: int
    summary: int

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        return (i // self.block == j // self.block) | (j % self.block >= self.block - self.summary)

    def columns(self, first: int, last: int, frames: int) -> Tensor:
        j = torch.arange(frames)
        own = (j >= first // self.block * self.block) & (j < ((last - 1) // self.block + 1) * self.block)
        return j[own | (j % self.block >= self.block - self.summary)]

    def needed(self, j: Tensor, coming: Tensor) -> Tensor:
        return (j // self.block >= coming // self.block) | (j % self.block >= self.block - self.summary)


@dataclass(frozen=True, slots=True)
class Dilated:
    """``reach`` frames on each side, ``dilation`` apart: Beltagy et al., arXiv 2004.05150, section 3.1."""

    reach: int
    dilation: int

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        return ((i - j).abs() <= self.reach * self.dilation) & ((i - j) % self.dilation == 0)

    def columns(self, first: int, last: int, frames: int) -> Tensor:
        return _range(first - self.reach * self.dilation, last + self.reach * self.dilation, frames)

    def needed(self, j: Tensor, coming: Tensor) -> Tensor:
        return j + self.reach * self.dilation >= coming


@dataclass(frozen=True, slots=True)
class GlobalLocal:
    """A window; the first ``tokens`` frames attend to all and are attended to by all: arXiv 2004.05150, section 3.1."""

    window: int
    tokens: int

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        return ((i - j).abs() <= self.window) | (j < self.tokens) | (i < self.tokens)

    def columns(self, first: int, last: int, frames: int) -> Tensor | None:
        if first < self.tokens:
            return None
        near = _range(max(first - self.window, self.tokens), last + self.window, frames)
        return torch.cat((_range(0, self.tokens, frames), near))

    def needed(self, j: Tensor, coming: Tensor) -> Tensor:
        return (j + self.window >= coming) | (j < self.tokens)


@dataclass(frozen=True, slots=True)
class BigBird:
    """Neighbouring, global and random blocks: Zaheer et al., arXiv 2007.14062, section 2.

    Each block draws among earlier blocks, and both attend to each other: so the pattern among the first blocks
    does not depend on the length of the recording.
    """

    block: int
    global_blocks: int
    random_blocks: int
    seed: int

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        a, b = i // self.block, j // self.block
        drawn = self._drawn(int(max(a.max(), b.max())) + 1).to(i.device)
        return ((a - b).abs() <= 1) | (a < self.global_blocks) | (b < self.global_blocks) | drawn[a, b]

    def columns(self, first: int, last: int, frames: int) -> Tensor:
        j = torch.arange(frames)
        block, own = j // self.block, torch.arange(first // self.block, (last - 1) // self.block + 1)
        drawn = self._drawn(int(max(block[-1], own[-1])) + 1)[own].any(dim=0)
        near = (block >= own[0] - 1) & (block <= own[-1] + 1)
        return j[near | (block < self.global_blocks) | (own[0] < self.global_blocks) | drawn[block]]

    def _drawn(self, blocks: int) -> Tensor:
        # A power of two, so that tiles share one cached table: its entries do not depend on its size.
        return _drawn_pairs(self.seed, self.random_blocks, 1 << (blocks - 1).bit_length())


@lru_cache(maxsize=8)
def _drawn_pairs(seed: int, count: int, blocks: int) -> Tensor:
    """Return (blocks, blocks), True where either block drew the other."""
    pairs = torch.zeros(blocks, blocks, dtype=torch.bool)
    for block in range(1, blocks):
        for other in random_blocks(seed, block, count):
            pairs[block, other] = pairs[other, block] = True
    return pairs


def random_blocks(seed: int, block: int, count: int) -> tuple[int, ...]:
    """Return the earlier blocks that a block draws (with repeats)."""
    generator = torch.Generator().manual_seed(mixed_seed(seed, block))
    return tuple(torch.randint(0, block, (count,), generator=generator).tolist())


@dataclass(frozen=True, slots=True)
class Logsparse:
    """The nearest frames of spans that double in length: Ren et al., arXiv 2107.05768, section 4.2, after Li et al.

    The spans to the left are those of the index's binary digits; those to the right are their siblings.
    """

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        seen = i == j
        for level in range(int(j.max()).bit_length() + 1):
            seen = seen | (j == self._partner(i, level))
        return seen

    def columns(self, first: int, last: int, frames: int) -> Tensor:
        i = torch.arange(first, last)
        needed = torch.cat([i, *(self._partner(i, level) for level in range(frames.bit_length() + 1))]).unique()
        return needed[needed < frames]

    def needed(self, j: Tensor, coming: Tensor) -> Tensor:
        # The frames that see j are those of the span from j + 1 on whose length is the lowest set bit of j + 1. So as
        # many frames are needed as the index of the next frame has set bits.
        begin = j + 1
        return begin + (begin & -begin) > coming

    @staticmethod
    def _partner(i: Tensor, level: int) -> Tensor:
        """Return the nearest frame of the span of 2 ** ``level`` frames that is the sibling of each query's own."""
        span = i >> level
        return torch.where(span % 2 == 1, (span << level) - 1, (span + 1) << level)


@dataclass(frozen=True, slots=True)
class Axial:
    """Same row or same column of a grid with ``row`` frames per row: Ho et al., arXiv 1912.12180, section 2."""

    row: int

    def allowed(self, i: Tensor, j: Tensor) -> Tensor:
        return (i // self.row == j // self.row) | (i % self.row == j % self.row)

    def columns(self, first: int, last: int, frames: int) -> None:
        del first, last, frames

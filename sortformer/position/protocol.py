"""The interface of position mechanisms: hooks without effect; each mechanism overrides those it needs."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

__all__ = ["Places", "Position"]


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of queries and keys, in frames from the start of the recording; fractional for compressed frames.

    If the keys are consecutive frames, and the queries a consecutive subset of them, ``first`` is the index of the
    first query among the keys.
    """

    query: Tensor  # (B or 1, T)
    key: Tensor  # (B or 1, S)
    first: int | None = None

    @classmethod
    def whole(cls, frames: int, device: torch.device | None = None) -> "Places":
        """Return the places for self-attention over a recording of ``frames``."""
        at = torch.arange(frames, device=device)[None]
        return cls(at, at, first=0)

    def part(self, rows: slice, columns: Tensor | None) -> "Places":
        """Return the places of a slice of the queries, and of the keys with indices ``columns`` (s,) (None: all)."""
        query = self.query[:, rows]
        if columns is not None:
            return replace(self, query=query, key=self.key[:, columns], first=None)
        return replace(self, query=query, first=None if self.first is None else self.first + (rows.start or 0))

    @property
    def distance(self) -> Tensor:
        """Signed distances (B or 1, T, S): the position of the key minus that of the query."""
        return self.key[:, None, :] - self.query[:, :, None]


class Position(nn.Module):
    """No position information; base class of the mechanisms."""

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        """Return frames ``x`` (B, T, D) with codes of their positions ``at`` (B or 1, T) added."""
        del at
        return x

    def rotate(self, query: Tensor, key: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        """Return query (B, H, T, d) and key (B, H, S, d), transformed by position before their product."""
        del places
        return query, key

    def codes(self, places: Places) -> Tensor | None:
        """Return the part of ``bias`` that depends on the keys of ``places`` alone, to compute once for all queries."""
        del places

    def bias(self, query: Tensor, places: Places, codes: Tensor | None = None) -> Tensor:
        """Return the bias (B or 1, H or 1, T, S) that is added to the scores before they are divided by sqrt(d).

        ``query`` is that before ``rotate``; ``codes``, if given, are those of any places with these keys.
        """
        del codes
        return query.new_zeros(places.distance.shape)[:, None]

    def factor(self, places: Places) -> Tensor:
        """Return the factor (B or 1, H or 1, T, S) that multiplies the rectified scores."""
        return torch.ones_like(places.distance, dtype=torch.bool)[:, None]  # which keeps the type of the scores

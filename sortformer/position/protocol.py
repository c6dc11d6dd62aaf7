"""What a position mechanism may do: four hooks, of which each mechanism overrides the one that it needs."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

__all__ = ["Places", "Position"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where queries and keys stand, in frames from the start of the recording; a compressed frame stands between two.

    Where the keys are frames one after the other, and the queries are some of these, one after the other as well,
    ``first`` is the index of the first query among the keys.
    """

    query: Tensor  # (B or 1, T)
    key: Tensor  # (B or 1, S)
    first: int | None = None

    @classmethod
    def whole(cls, frames: int, device: torch.device | None = None) -> "Places":
        """Return the places of a recording of ``frames`` that attends to itself."""
        at = torch.arange(frames, device=device)[None]
        return cls(at, at, first=0)

    def part(self, rows: slice, columns: Tensor | None) -> "Places":
        """Return the places of a run of queries, and of the keys with the indices ``columns`` (s,) (None: all)."""
        query = self.query[:, rows]
        if columns is not None:
            return replace(self, query=query, key=self.key[:, columns], first=None)
        return replace(self, query=query, first=None if self.first is None else self.first + (rows.start or 0))

    @property
    def distance(self) -> Tensor:
        """How far each key is after each query, (B or 1, T, S)."""
        return self.key[:, None, :] - self.query[:, :, None]


class Position(nn.Module):
    """No position information: frames are a set."""

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        """Return frames ``x`` (B, T, D) with their places ``at`` (B or 1, T) written into them."""
        del at
        return x

    def rotate(self, query: Tensor, key: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        """Return query (B, H, T, d) and key (B, H, S, d) as their product should see them."""
        del places
        return query, key

    def codes(self, places: Places) -> Tensor | None:
        """Return what ``bias`` has to know of the keys of ``places`` whichever of them ask, to be computed once."""
        del places

    def bias(self, query: Tensor, places: Places, codes: Tensor | None = None) -> Tensor:
        """Return what is added (B or 1, H, T, S) to the scores before they are divided by sqrt(d).

        ``query`` is as it was before ``rotate``; ``codes`` are those of any places with these keys, if known.
        """
        raise NotImplementedError

    def factor(self, places: Places) -> Tensor:
        """Return what multiplies (B or 1, H, T, S) the rectified scores."""
        raise NotImplementedError

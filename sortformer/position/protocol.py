"""What a position mechanism may do: four hooks, of which each mechanism overrides the one that it needs."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

__all__ = ["Places", "Position"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where queries and keys stand, in frames from the start of the recording; a compressed frame stands between two.

    With ``consecutive``, queries and keys are the same frames, one after the other.
    """

    query: Tensor  # (B or 1, T)
    key: Tensor  # (B or 1, S)
    consecutive: bool = False

    @classmethod
    def whole(cls, frames: int, device: torch.device | None = None) -> "Places":
        """Return the places of a recording of ``frames`` that attends to itself."""
        at = torch.arange(frames, device=device)[None]
        return cls(at, at, consecutive=True)

    def part(self, rows: slice, columns: Tensor | None) -> "Places":
        """Return the places of some queries, and of the keys with the indices ``columns`` (s,) (None: all)."""
        key = self.key if columns is None else self.key[:, columns]
        return replace(self, query=self.query[:, rows], key=key, consecutive=False)

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

    def bias(self, query: Tensor, places: Places) -> Tensor | None:
        """Return what is added (B or 1, H, T, S) to the scores before they are divided by sqrt(d).

        ``query`` is as it was before ``rotate``.
        """
        del query, places

    def factor(self, places: Places) -> Tensor | None:
        """Return what multiplies (B or 1, H, T, S) the rectified scores."""
        del places

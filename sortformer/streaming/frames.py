"""Frames that a stream keeps: their embeddings, and who speaks in them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sortformer.ragged import end_to_end, window

__all__ = ["Frames"]


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of B streams, of which the first ``length`` of each row count."""

    emb: Tensor  # (B, T, D)
    probs: Tensor  # (B, T, S)
    length: Tensor  # (B,) int64

    @classmethod
    def none(cls, rows: int, frames: int, dim: int, num_slots: int, device: torch.device | None = None) -> "Frames":
        """Return no frames yet of ``rows`` streams, with room for ``frames``."""
        emb, probs = (torch.zeros(rows, frames, size, dtype=torch.float32, device=device) for size in (dim, num_slots))
        return cls(emb, probs, torch.zeros(rows, dtype=torch.int64, device=device))

    def then(self, other: "Frames", room: int | None = None) -> "Frames":
        """Return these frames followed by others, row by row, with ``room`` for so many (None: for the longest row)."""
        emb, length = end_to_end([(self.emb, self.length), (other.emb, other.length)], room)
        probs, _ = end_to_end([(self.probs, self.length), (other.probs, other.length)], room)
        return Frames(emb, probs, length)

    def part(self, first: Tensor, length: Tensor, room: int) -> "Frames":
        """Return ``length`` (B,) frames from ``first`` (B,) on, with ``room`` for so many."""
        return Frames(window(self.emb, first, length, room), window(self.probs, first, length, room), length)

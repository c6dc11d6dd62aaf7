"""Keys and values of past frames: the state of windows, of adaptive spans and of the kNN memory."""

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["KeyValues"]


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Keys and values of the last frames, oldest first."""

    key: Tensor  # (B, H, n, d)
    value: Tensor  # (B, H, n, d)
    valid: Tensor  # (B, n)

    @classmethod
    def start(cls, query: Tensor) -> "KeyValues":
        """Return the empty state, for queries of the shape (but for T) and type of ``query`` (B, H, T, d)."""
        none = query[:, :, :0]
        return cls(none, none, torch.zeros(query.shape[0], 0, dtype=torch.bool, device=query.device))

    def then(self, key: Tensor, value: Tensor, valid: Tensor) -> "KeyValues":
        """Return the state with frames (B, H, T, d) appended, of which ``valid`` (B, T) count."""
        return KeyValues(
            torch.cat((self.key, key), dim=2),
            torch.cat((self.value, value), dim=2),
            torch.cat((self.valid, valid), dim=1),
        )

    def last(self, frames: int) -> "KeyValues":
        """Return the state cut to its last ``frames``."""
        kept = slice(max(0, self.key.shape[2] - frames), None)
        return KeyValues(self.key[:, :, kept], self.value[:, :, kept], self.valid[:, kept])

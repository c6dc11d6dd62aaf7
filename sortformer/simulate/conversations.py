"""A batch of recordings with reference labels, simulated or cropped from real ones."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from sortformer.audio.loudness import alike_loud

__all__ = ["Conversations"]


@dataclass(frozen=True, slots=True, eq=False)
class Conversations:
    """A batch of recordings with reference labels.

    Attributes:
        wave: (B, N) float32. Full scale is 1; the recorder's effects behind its limiter may exceed it by some percent,
            and peaks of a soft recording after loudness normalisation by more.
        activity: (B, T, S) float32 of zeros and ones; slots in order of arrival.
        num_samples: (B,) int64.
        voice: (B, S) int64, the voice of each slot, -1 for none.
    """

    wave: Tensor
    activity: Tensor
    num_samples: Tensor
    voice: Tensor

    @classmethod
    def joined(cls, parts: Sequence["Conversations"]) -> "Conversations":
        """Concatenate the rows of several batches of the same length."""
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def split(self) -> list["Conversations"]:
        """Return each row as a batch of one."""
        rows = zip(*(getattr(self, field.name).split(1) for field in fields(self)), strict=True)
        return [Conversations(*row) for row in rows]

    def alike_loud(self) -> "Conversations":
        """Return the batch (on the CPU) with each recording's loudness normalised as in ``diarize``; padding stays."""
        wave = self.wave.clone()
        for row, count in enumerate(self.num_samples.tolist()):
            wave[row, :count] = torch.from_numpy(alike_loud(wave[row, :count].numpy()))
        return replace(self, wave=wave)

    def to(self, device: str | torch.device) -> "Conversations":
        """Return the same batch on a device."""
        return Conversations(*(getattr(self, field.name).to(device) for field in fields(self)))

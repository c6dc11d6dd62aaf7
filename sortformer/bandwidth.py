"""How much of the spectrum a recording has: telephones, and whatever else records at 8 kHz, leave the upper half empty.

What was recorded so is told by its sound and not by the rate of its file, since calls are often stored at 16 kHz.
"""

import torch
from torch import Tensor

from sortformer.features import FIXED_MEAN, FIXED_STD, bands_below

__all__ = ["NARROW_HZ", "is_narrow", "sounding"]

NARROW_HZ = 4000.0
"""What a recorder of 8 kHz keeps at most."""
_LEAST_SOUND = (-14.5 - FIXED_MEAN) / FIXED_STD  # above what 16 bits leave of silence, below the quietest rooms
_FEW = 0.05  # of the frames that sound: clicks at the seams of a recording, a tone before the call


def sounding(feats: Tensor, valid: Tensor) -> Tensor:
    """Return how many frames sound below and above 4 kHz, (B, 2), of "fixed" features (B, T, M), ``valid`` (B, T)."""
    bands = bands_below(feats.shape[2], NARROW_HZ)
    halves = torch.stack([feats[..., :bands].mean(dim=2), feats[..., bands:].mean(dim=2)], dim=2)
    return ((halves > _LEAST_SOUND) & valid[..., None]).sum(dim=1)


def is_narrow(counts: Tensor) -> Tensor:
    """Return whether recordings with such ``counts`` (B, 2) were made at 8 kHz, (B,); silence was not."""
    return (counts[:, 0] > 0) & (counts[:, 1] <= _FEW * counts[:, 0])

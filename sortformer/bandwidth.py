"""Detection of narrow-band recordings: telephones and other 8 kHz sources leave the upper half of the spectrum empty.

The audio decides and not the sample rate of the file, since calls are often stored at 16 kHz.
"""

import torch
from torch import Tensor

from sortformer.features import FIXED_MEAN, FIXED_STD, narrow_bands

__all__ = ["is_narrow", "sounding"]

_LEAST_SOUND = (-14.5 - FIXED_MEAN) / FIXED_STD  # above 16-bit quantisation noise, below the quietest rooms
_FEW = 0.05  # share of the frames with sound: clicks at cuts, a tone before the call


def sounding(feats: Tensor, valid: Tensor) -> Tensor:
    """Count the frames with sound below and above 4 kHz, (B, 2), in "fixed" features (B, T, M), ``valid`` (B, T)."""
    bands = narrow_bands(feats.shape[2])
    halves = torch.stack([feats[..., :bands].mean(dim=2), feats[..., bands:].mean(dim=2)], dim=2)
    return ((halves > _LEAST_SOUND) & valid[..., None]).sum(dim=1)


def is_narrow(counts: Tensor) -> Tensor:
    """Return whether recordings with these ``counts`` (B, 2) are narrow-band, (B,); silence is not."""
    return (counts[:, 0] > 0) & (counts[:, 1] <= _FEW * counts[:, 0].float())

"""How steeply sound falls towards high frequencies: a microphone under cloth tilts the spectrum of all that it hears.

A model knows the tilts that it was trained with. What lies beyond is brought to the nearer end of these, and what lies
within stays as it is.
"""

import torch
from torch import Tensor

__all__ = ["equaliser"]

_FROM_HZ, _TO_HZ = 250.0, 4000.0  # speech has little below that tells, and telephones nothing above
# About four seconds of speech at -24 dBFS weigh as much as the guess that a tilt is in the middle: of a few words each
# sound has a tilt of its own.
_FIRST_POWER = 1000.0
_MOST = 1e4  # 40 dB: what is silent in a band stays so
_LEAST_POWER = 1e-12  # digital silence has a tilt, too: none


def equaliser(power: Tensor, hz: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Return the factors (B, M) on the power of bands around ``hz`` (M,) that bring recordings between ``bounds``.

    The tilt, in dB per octave, is the slope of the long-term average spectrum from 250 Hz to 4 kHz, by least squares
    over octaves. ``power`` (B, M) is the density in each band, summed over all frames that have been heard; the less
    there is, the more the tilt is taken for one in the middle. A recording stays as loud as it is, and no band
    changes by more than 40 dB.
    """
    octaves = hz.log2()
    edges = torch.cat([octaves[:1], (octaves[1:] + octaves[:-1]) / 2, octaves[-1:]])
    weight = edges.diff() * ((hz >= _FROM_HZ) & (hz <= _TO_HZ))  # of a line through places that lie unevenly
    weight = weight / weight.sum()
    centred = octaves - weight @ octaves
    slope = weight * centred / (weight @ centred.square())
    heard, power = torch.trapezoid(power, hz), power + _LEAST_POWER
    middle = sum(bounds) / 2
    tilt = middle + heard / (heard + _FIRST_POWER) * (10 * power.log10() @ slope - middle)
    factors = 10 ** ((tilt.clamp(*bounds) - tilt)[:, None] * centred / 10)
    factors = factors * (torch.trapezoid(power, hz) / torch.trapezoid(power * factors, hz))[:, None]
    return factors.clamp(1 / _MOST, _MOST)

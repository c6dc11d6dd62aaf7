"""Equalisation of the spectral tilt, which is steep, for example, if the microphone is covered by cloth.

A tilt outside the range that the model was trained with is moved to its nearer bound; a tilt within it is unchanged.
"""

import torch
from torch import Tensor

__all__ = ["equaliser"]

_FROM_HZ, _TO_HZ = 250.0, 4000.0  # speech has little information below, and telephones nothing above
# The prior, a tilt in the middle of the bounds, weighs as much as about four seconds of speech at -24 dBFS: in a few
# words the individual sounds dominate the tilt.
_FIRST_POWER = 1000.0
_MOST = 1e4  # 40 dB: silent bands stay silent
_LEAST_POWER = 1e-12  # gives digital silence a tilt of 0


def equaliser(power: Tensor, hz: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Return power gains (B, M), for bands around ``hz`` (M,), that move the tilts of recordings within ``bounds``.

    The tilt, in dB per octave, is the slope of the long-term average spectrum from 250 Hz to 4 kHz, fitted by least
    squares over octaves. ``power`` (B, M) is the density in each band, summed over all frames so far; the less there
    is, the closer the estimate is to the middle of the bounds. The total power of a recording does not change, and no
    band changes by more than 40 dB.
    """
    octaves = hz.log2()
    edges = torch.cat([octaves[:1], (octaves[1:] + octaves[:-1]) / 2, octaves[-1:]])
    weight = edges.diff() * ((hz >= _FROM_HZ) & (hz <= _TO_HZ))  # the bands are not evenly spaced
    weight = weight / weight.sum()
    centred = octaves - weight @ octaves
    slope = weight * centred / (weight @ centred.square())
    heard, power = torch.trapezoid(power, hz), power + _LEAST_POWER
    middle = sum(bounds) / 2
    tilt = middle + heard / (heard + _FIRST_POWER) * (10 * power.log10() @ slope - middle)
    factors = 10 ** ((tilt.clamp(*bounds) - tilt)[:, None] * centred / 10)
    factors = factors * (torch.trapezoid(power, hz) / torch.trapezoid(power * factors, hz))[:, None]
    return factors.clamp(1 / _MOST, _MOST)

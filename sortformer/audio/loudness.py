"""Quiet recordings, made as loud as what a model has learned from."""

import math

import numpy as np

from sortformer.audio.signal import INAUDIBLE

__all__ = ["how_quiet", "peak", "raised"]

_LOUD_ENOUGH = 0.1  # -20 dB of full scale
_MOST = 31.6  # 30 dB
_QUIET = 0.01  # -40 dB: where nobody is heard, that may be why


def peak(samples: np.ndarray) -> float:
    """Return the highest absolute value of samples (N,), 0 of none."""
    return float(np.abs(samples).max(initial=0.0))


def raised(samples: np.ndarray, highest: float) -> np.ndarray:
    """Return samples (N,) of a recording whose ``highest`` one is given, louder by one factor if that is below 0.1.

    The factor brings the highest to 0.1 (-20 dBFS), and is 30 dB at most. A recording is raised and never lowered, so
    that whatever is loud enough stays as it is, bit for bit.
    """
    if highest >= _LOUD_ENOUGH:
        return samples
    return samples * np.float32(min(_MOST, _LOUD_ENOUGH / max(highest, np.finfo(np.float32).tiny)))


def how_quiet(highest: float) -> str:
    """Return what to add to the news that nobody speaks, by the highest sample; nothing where it is not quiet."""
    if highest < INAUDIBLE:
        return ": it is silent"
    if highest < _QUIET:
        return f": it is quiet, no sample exceeds {20 * math.log10(highest):.0f} dB of full scale"
    return ""

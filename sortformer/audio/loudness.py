"""How loud a recording is, and all of them made alike loud: so it does not matter how a file was made."""

import math

import numpy as np

from sortformer.audio.signal import INAUDIBLE

__all__ = ["Level", "how_quiet", "levelled", "peak"]

_WANTED = 10 ** (-24 / 20)
_MOST = 31.6  # 30 dB
_PIECE_SAMPLES = 1600  # 0.1 s
_SHARE = 95  # percent of the pieces that are no louder: speech sets it, also where it pauses much, and no knock
_RANGE = 10 ** (15 / 20)  # of the highest sample above it, at most: where next to nobody speaks, speech sets it too
_QUIET = 0.01  # -40 dB: where nobody is heard, that may be why


def peak(samples: np.ndarray) -> float:
    """Return the highest absolute value of samples (N,), 0 of none."""
    return float(np.abs(samples).max(initial=0.0))


class Level:
    """How loud the speech of a recording is, as far as it has been heard: what of 0.1 s is highest, 95 % of the time.

    It lies 15 dB below the highest sample at most.
    """

    def __init__(self) -> None:
        self._peaks: list[np.ndarray] = []

    def add(self, samples: np.ndarray) -> None:
        """Hear samples (N,); of what is cut into pieces of 0.1 s from its beginning, the rest goes with the last."""
        whole = len(samples) - len(samples) % _PIECE_SAMPLES
        loud = np.abs(samples)
        peaks = loud[:whole].reshape(-1, _PIECE_SAMPLES).max(axis=1, initial=0.0)
        if whole < len(samples):
            peaks = np.append(peaks[:-1], loud[max(0, whole - _PIECE_SAMPLES) :].max())
        self._peaks.append(peaks)

    @property
    def value(self) -> float:
        """The level, as an amplitude; 0 of nothing."""
        peaks = np.concatenate([np.zeros(0), *self._peaks])
        return float(max(np.percentile(peaks, _SHARE), peaks.max() / _RANGE)) if len(peaks) else 0.0


def levelled(samples: np.ndarray, level: float) -> np.ndarray:
    """Return samples (N,) of a recording whose level is given, by one factor louder or softer: at -24 dBFS.

    Louder by 30 dB at most, so that silence stays what it is.
    """
    return samples * np.float32(min(_MOST, _WANTED / max(level, np.finfo(np.float32).tiny)))


def how_quiet(highest: float) -> str:
    """Return what to add to the news that nobody speaks, by the highest sample; nothing where it is not quiet."""
    if highest < INAUDIBLE:
        return ": it is silent"
    if highest < _QUIET:
        return f": it is quiet, no sample exceeds {20 * math.log10(highest):.0f} dB of full scale"
    return ""

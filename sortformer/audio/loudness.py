"""How loud a recording is, and all of them made alike loud: so it does not matter how a file or a stream was made."""

import math
from dataclasses import dataclass

import numpy as np

from sortformer.audio.signal import INAUDIBLE

__all__ = ["LIVE", "UNHEARD", "Level", "how_quiet", "levelled", "peak"]

_WANTED = 10 ** (-24 / 20)
_MOST = 31.6  # 30 dB
_PIECE_SAMPLES = 1600  # 0.1 s
_SHARE = 0.95  # of the pieces that are no louder: speech sets it, also where it pauses much, and no knock
# No lower than this below the sixth loudest piece: where next to nobody speaks, a word sets it, and no click.
_LOUDEST, _RANGE_DB = 6, 15
_QUIET = 0.01  # -40 dB: where nobody is heard, that may be why
# Peaks of pieces are counted in steps of 0.2 dB, so that hours take no more room than seconds.
_LEAST_DB, _STEPS_A_DB, _BINS = -120, 5, 800
# What a stream is taken to have been before its first sample, in dB and pieces: loud, until it is clear that it is not,
# since sounds before the first word that are made too loud become voices.
_BEFORE = ((-14, 4), (-24, 20))


def peak(samples: np.ndarray) -> float:
    """Return the highest absolute value of samples (N,), 0 of none."""
    return float(np.abs(samples).max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """How loud the speech of a recording is, as far as it has been heard: what of 0.1 s is highest, 95 % of the time.

    A piece of 0.1 s counts when all of it has been heard, without its mean.

    Attributes:
        counts: (bins,) pieces, by their highest samples.
        begun: (n,) samples of the next piece.
    """

    counts: np.ndarray
    begun: np.ndarray

    def after(self, samples: np.ndarray) -> "Level":
        """Return the level when samples (N,) have been heard, too."""
        heard = np.concatenate([self.begun, samples])
        whole = len(heard) - len(heard) % _PIECE_SAMPLES
        pieces = heard[:whole].reshape(-1, _PIECE_SAMPLES)
        peaks = np.abs(pieces - pieces.mean(axis=1, keepdims=True)).max(axis=1)
        return Level(self.counts + _counted(20 * np.log10(np.maximum(peaks, 1e-9))), heard[whole:])

    @property
    def value(self) -> float:
        """The level, as an amplitude: the highest sample of what is no whole piece, 0 of nothing."""
        upto = np.cumsum(self.counts)
        if upto[-1] == 0:
            return peak(self.begun)
        usual, loud = np.searchsorted(upto, [_SHARE * upto[-1], upto[-1] - _LOUDEST + 1]) + 0.5
        return 10 ** ((_LEAST_DB + max(usual / _STEPS_A_DB, loud / _STEPS_A_DB - _RANGE_DB)) / 20)


def _counted(decibels: np.ndarray) -> np.ndarray:
    """How many of some levels are in each bin, (bins,)."""
    bins = np.clip((decibels - _LEAST_DB) * _STEPS_A_DB, 0, _BINS - 1).astype(np.int64)
    return np.bincount(bins, minlength=_BINS)


_NOTHING = np.zeros(0, dtype=np.float32)
UNHEARD = Level(_counted(_NOTHING), _NOTHING)
"""The level of a recording of which nothing has been heard yet."""
LIVE = Level(_counted(np.repeat(*np.array(_BEFORE, dtype=np.int64).T)), _NOTHING)
"""The level of a stream of which nothing has been heard yet."""


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

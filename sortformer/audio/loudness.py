"""Loudness normalisation: the speech of all recordings is brought to the same level, however they were recorded."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from sortformer.audio.offset import centred
from sortformer.audio.signal import INAUDIBLE
from sortformer.grid import SAMPLE_RATE

__all__ = ["UNHEARD", "Level", "Peaks", "alike_loud", "decibels", "how_quiet", "levelled", "peak", "peaks_of"]

_WANTED = 10 ** (-24 / 20)
_MOST = 31.6  # 30 dB
_PIECE_SAMPLES = 1600  # 0.1 s
_SHARE = 0.95  # of the pieces do not exceed the level: speech with many pauses still sets it, and a few knocks do not
# The level is at most 15 dB below the sixth loudest piece: with little speech, a word sets it, and a click does not.
_LOUDEST, _RANGE_DB = 6, 15
_SILENCE_DB = 25  # pieces this far below the level are silence, and how many there are must not change the level
_QUIET = 0.01  # -40 dB: below, quietness may be why no speech is found
_LEAST_DB, _STEPS_A_DB, _BINS = -120, 5, 800


def peak(samples: np.ndarray) -> float:
    """Return the highest absolute value of samples (N,), 0 if there are none."""
    return float(np.abs(samples).max(initial=0.0))


def decibels(value: float) -> float:
    """Return an amplitude in dB of full scale, -120 at least."""
    return max(_LEAST_DB, 20 * math.log10(max(value, np.finfo(np.float32).tiny)))


def peaks_of(begun: np.ndarray, samples: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the peaks (P,) of the pieces that are complete now, each without its mean, and the remaining samples (n,).

    A piece is ``length`` samples; ``begun`` is the remainder from before ``samples`` (N,).
    """
    heard = np.concatenate([begun, samples])
    whole = len(heard) - len(heard) % length
    pieces = heard[:whole].reshape(-1, length)
    return np.abs(pieces - pieces.mean(axis=1, keepdims=True)).max(axis=1), heard[whole:].copy()


@dataclass(frozen=True, slots=True, eq=False)
class Peaks:
    """A histogram of the peaks of pieces, in bins of 0.2 dB: its size does not grow with the duration.

    Attributes:
        counts: (bins,) pieces, softest first.
    """

    counts: np.ndarray = field(default_factory=lambda: np.zeros(_BINS, dtype=np.int64))

    def also(self, highest: np.ndarray) -> "Peaks":
        """Return the histogram with more peaks (P,) added."""
        bins = (20 * np.log10(np.maximum(highest, 1e-9)) - _LEAST_DB) * _STEPS_A_DB
        return Peaks(self.counts + np.bincount(np.clip(bins, 0, _BINS - 1).astype(np.int64), minlength=_BINS))

    @property
    def total(self) -> int:
        """The number of pieces."""
        return int(self.counts.sum())

    @property
    def usual(self) -> float:
        """The level that the peaks of 95 % of the pieces do not exceed, in dB."""
        return self.below(_SHARE * self.total)

    def softer(self, decibels: float) -> int:
        """Return how many pieces have a peak below a level in dB."""
        return int(self.counts[: _bin(decibels)].sum())

    def above(self, decibels: float) -> "Peaks":
        """Return the histogram of the pieces with a peak above a level in dB."""
        return Peaks(np.where(np.arange(_BINS) < _bin(decibels), 0, self.counts))

    def below(self, count: float) -> float:
        """Return the level that the peaks of the ``count`` softest pieces do not exceed, in dB."""
        return _LEAST_DB + (int(np.searchsorted(np.cumsum(self.counts), count)) + 0.5) / _STEPS_A_DB


def _bin(decibels: float) -> int:
    return max(0, round((decibels - _LEAST_DB) * _STEPS_A_DB))


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The level of the speech in a recording so far, from the peaks of pieces of 0.1 s.

    95 % of the pieces that are not silent do not exceed it. A piece counts once it is complete.

    Attributes:
        peaks: those of the complete pieces.
        begun: (n,) samples of the next piece.
    """

    peaks: Peaks
    begun: np.ndarray

    def after(self, samples: np.ndarray) -> "Level":
        """Return the level after more samples (N,)."""
        found, begun = peaks_of(self.begun, samples, _PIECE_SAMPLES)
        return Level(self.peaks.also(found), begun)

    @property
    def audible(self) -> "Level":
        """The level of the pieces that are not digital silence."""
        return replace(self, peaks=self.peaks.above(decibels(INAUDIBLE)))

    @property
    def seconds(self) -> float:
        """The duration so far, in complete pieces."""
        return self.peaks.total * _PIECE_SAMPLES / SAMPLE_RATE

    @property
    def with_silence(self) -> float:
        """The level over all pieces, silent ones included, in dB."""
        total = self.peaks.total
        if total == 0:
            return decibels(peak(self.begun))
        return max(self.peaks.usual, self.peaks.below(total - _LOUDEST + 1) - _RANGE_DB)

    @property
    def value(self) -> float:
        """The level, as an amplitude; before the first complete piece, the peak so far (0 without samples)."""
        total = self.peaks.total
        if total == 0:
            return peak(self.begun)
        silent = self.peaks.softer(self.with_silence - _SILENCE_DB)
        usual = self.peaks.below(silent + _SHARE * (total - silent))
        return 10 ** (max(usual, self.with_silence) / 20)


UNHEARD = Level(Peaks(), np.zeros(0, dtype=np.float32))
"""The level before the first sample."""


def levelled(samples: np.ndarray, level: float) -> np.ndarray:
    """Return samples (N,) of a recording of the given level, scaled to -24 dBFS.

    The gain is 30 dB at most, so that silence stays silent.
    """
    with np.errstate(under="ignore"):  # also where a program lets numpy raise
        return samples * np.float32(min(_MOST, _WANTED / max(level, np.finfo(np.float32).tiny)))


def alike_loud(samples: np.ndarray, level: float | None = None) -> np.ndarray:
    """Return samples (N,) of a recording without offset (``centred``) and ``levelled``, as our models expect them.

    ``level`` is that of the whole recording (None: of these samples).
    """
    level = UNHEARD.after(samples).value if level is None else level
    return levelled(centred(samples)[0], level)


def how_quiet(highest: float) -> str:
    """Return the addition to a message that nobody speaks, given the peak; empty if the recording is not quiet."""
    if highest < INAUDIBLE:
        return ": it is silent"
    if highest < _QUIET:
        return f": it is quiet, no sample exceeds {decibels(highest):.0f} dBFS"
    return ""

"""How loud a recording is, and all of them made alike loud: so it does not matter how a file or a stream was made."""

import math
from dataclasses import dataclass, field

import numpy as np

from sortformer.audio.offset import centred
from sortformer.audio.signal import INAUDIBLE
from sortformer.grid import SAMPLE_RATE

__all__ = ["UNHEARD", "Level", "Peaks", "alike_loud", "decibels", "how_quiet", "levelled", "peak", "peaks_of"]

_WANTED = 10 ** (-24 / 20)
_MOST = 31.6  # 30 dB
_PIECE_SAMPLES = 1600  # 0.1 s
_SHARE = 0.95  # of the pieces are no louder than the level: so speech with many pauses sets it, and a few knocks do not
# The level is no further below the sixth loudest piece: of little speech a word sets it, and a click does not.
_LOUDEST, _RANGE_DB = 6, 15
_SILENCE_DB = 25  # what is so much softer than the rest is no speech, and how long it lasts says nothing of the level
_QUIET = 0.01  # -40 dB: where nobody is heard, that may be why
_LEAST_DB, _STEPS_A_DB, _BINS = -120, 5, 800


def peak(samples: np.ndarray) -> float:
    """Return the highest absolute value of samples (N,), 0 of none."""
    return float(np.abs(samples).max(initial=0.0))


def decibels(value: float) -> float:
    """Return an amplitude in dB of full scale, -120 of what is less."""
    return max(_LEAST_DB, 20 * math.log10(max(value, np.finfo(np.float32).tiny)))


def peaks_of(begun: np.ndarray, samples: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the highest samples (P,) of the pieces that are whole now, each without its mean, and what is left (n,).

    A piece is ``length`` samples; ``begun`` is what was left before ``samples`` (N,) came.
    """
    heard = np.concatenate([begun, samples])
    whole = len(heard) - len(heard) % length
    pieces = heard[:whole].reshape(-1, length)
    return np.abs(pieces - pieces.mean(axis=1, keepdims=True)).max(axis=1), heard[whole:]


@dataclass(frozen=True, slots=True, eq=False)
class Peaks:
    """The highest samples of pieces, counted in steps of 0.2 dB: hours take no more room than seconds.

    Attributes:
        counts: (bins,) pieces, from the softest on.
    """

    counts: np.ndarray = field(default_factory=lambda: np.zeros(_BINS, dtype=np.int64))

    def also(self, highest: np.ndarray) -> "Peaks":
        """Return these and others (P,)."""
        bins = (20 * np.log10(np.maximum(highest, 1e-9)) - _LEAST_DB) * _STEPS_A_DB
        return Peaks(self.counts + np.bincount(np.clip(bins, 0, _BINS - 1).astype(np.int64), minlength=_BINS))

    @property
    def total(self) -> int:
        """Pieces that are counted."""
        return int(self.counts.sum())

    @property
    def usual(self) -> float:
        """What the highest samples do not exceed in 95 % of the pieces, in dB."""
        return self.below(_SHARE * self.total)

    def softer(self, decibels: float) -> int:
        """Return how many pieces do not reach a level."""
        return int(self.counts[: max(0, round((decibels - _LEAST_DB) * _STEPS_A_DB))].sum())

    def below(self, count: float) -> float:
        """Return what the highest samples of ``count`` pieces do not exceed, in dB."""
        return _LEAST_DB + (int(np.searchsorted(np.cumsum(self.counts), count)) + 0.5) / _STEPS_A_DB


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """How loud the speech of a recording is, as far as it has been heard, by the highest samples of pieces of 0.1 s.

    It is what 95 % of the pieces do not exceed, but for silent ones. A piece counts when all of it has been heard.

    Attributes:
        peaks: of the pieces.
        begun: (n,) samples of the next piece.
    """

    peaks: Peaks
    begun: np.ndarray

    def after(self, samples: np.ndarray) -> "Level":
        """Return the level when samples (N,) have been heard, too."""
        found, begun = peaks_of(self.begun, samples, _PIECE_SAMPLES)
        return Level(self.peaks.also(found), begun)

    @property
    def seconds(self) -> float:
        """How much has been heard, in whole pieces."""
        return self.peaks.total * _PIECE_SAMPLES / SAMPLE_RATE

    @property
    def with_silence(self) -> float:
        """The level of all that has been heard, silence too, in dB."""
        total = self.peaks.total
        if total == 0:
            return decibels(peak(self.begun))
        return max(self.peaks.usual, self.peaks.below(total - _LOUDEST + 1) - _RANGE_DB)

    @property
    def value(self) -> float:
        """The level, as an amplitude: the highest sample of what is no whole piece, 0 of nothing."""
        total = self.peaks.total
        if total == 0:
            return peak(self.begun)
        silent = self.peaks.softer(self.with_silence - _SILENCE_DB)
        usual = self.peaks.below(silent + _SHARE * (total - silent))
        return 10 ** (max(usual, self.with_silence) / 20)


UNHEARD = Level(Peaks(), np.zeros(0, dtype=np.float32))
"""Before the first sample."""


def levelled(samples: np.ndarray, level: float) -> np.ndarray:
    """Return samples (N,) of a recording whose level is given, by one factor louder or softer: at -24 dBFS.

    Louder by 30 dB at most, so that silence stays what it is.
    """
    return samples * np.float32(min(_MOST, _WANTED / max(level, np.finfo(np.float32).tiny)))


def alike_loud(samples: np.ndarray, level: float | None = None) -> np.ndarray:
    """Return samples (N,) of a recording around 0 (``centred``) and ``levelled``: as models of ours hear it.

    ``level`` is that of the whole recording (None: of these samples).
    """
    level = UNHEARD.after(samples).value if level is None else level
    return levelled(centred(samples)[0], level)


def how_quiet(highest: float) -> str:
    """Return what to add to the news that nobody speaks, by the highest sample; nothing where it is not quiet."""
    if highest < INAUDIBLE:
        return ": it is silent"
    if highest < _QUIET:
        return f": it is quiet, no sample exceeds {decibels(highest):.0f} dB of full scale"
    return ""

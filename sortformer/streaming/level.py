"""How loud a stream is, as far as it is known by now: by the speech that the model has heard in it."""

from dataclasses import dataclass, replace

import numpy as np

from sortformer.audio.loudness import UNHEARD, Level, Peaks, decibels, peaks_of
from sortformer.grid import FrameGrid

__all__ = ["NEW", "StreamLevel"]

_FRAME_SAMPLES = FrameGrid().step_samples
_SPEECH = 0.7  # speakers expected in a frame, more than which are speech: what is doubtful is no evidence
# What a stream is taken for at first, in dB, and how many frames of speech weigh as much: rather loud, since sounds
# before the first word that are made too loud become voices.
_FIRST_DB, _FIRST_FRAMES = -20.0, 20
# By so much a second it may be quieter than that: speech that is too quiet to be heard is no evidence.
_QUIETER_DB_S = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class StreamLevel:
    """The level of a stream: what frames with speech exceed in 5 % of the cases, the more of it the more that counts.

    Attributes:
        every: the level of all that has been heard, with speech or without.
        begun: (n,) samples of the next frame.
        open: (t,) highest samples of the frames of which it is not known whether somebody speaks.
        spoken: those of the frames in which somebody does.
    """

    every: Level
    begun: np.ndarray
    open: np.ndarray
    spoken: Peaks

    def after(self, samples: np.ndarray) -> "StreamLevel":
        """Return the level when samples (N,) have been heard, too."""
        found, begun = peaks_of(self.begun, samples, _FRAME_SAMPLES)
        return StreamLevel(self.every.after(samples), begun, np.concatenate([self.open, found]), self.spoken)

    def told(self, speakers: np.ndarray) -> "StreamLevel":
        """Return the level when it is known how many speakers are expected in each of the next frames, (t,)."""
        known, still_open = np.split(self.open, [len(speakers)])
        return replace(self, open=still_open, spoken=self.spoken.also(known[speakers > _SPEECH]))

    @property
    def value(self) -> float:
        """The level, as an amplitude."""
        least = _FIRST_DB - _QUIETER_DB_S * self.every.seconds
        first, frames = max(decibels(self.every.value), least), self.spoken.total
        return 10 ** ((_FIRST_FRAMES * first + frames * self.spoken.usual) / (_FIRST_FRAMES + frames) / 20)


NEW = StreamLevel(UNHEARD, UNHEARD.begun, np.zeros(0, dtype=np.float32), Peaks())
"""Before the first sample."""

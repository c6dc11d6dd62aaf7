"""The level of a stream, estimated from the speech that the model has found in it so far."""

from dataclasses import dataclass, replace

import numpy as np

from sortformer.audio.loudness import UNHEARD, Level, Peaks, peaks_of
from sortformer.grid import FrameGrid

__all__ = ["NEW", "StreamLevel"]

_FRAME_SAMPLES = FrameGrid().step_samples
# The prior, in dB, and its weight in frames of speech. It is rather high: noise before the first word that is amplified
# too much would be taken for voices.
_FIRST_DB, _FIRST_FRAMES = -20.0, 20
# The prior may fall this much per second of audio (but not of digital silence) towards the level of all audio, because
# speech that is too quiet to be detected does not update the level.
_QUIETER_DB_S = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class StreamLevel:
    """The level of a stream: a prior at first, which the levels of speech frames gradually outweigh.

    The level of speech is the 95 % quantile of the peaks of its frames.

    Attributes:
        every: the level of all audio so far, with speech or without.
        begun: (n,) samples of the next frame.
        open: (t,) peaks of the frames whose speaker probabilities are not known yet.
        spoken: peaks of the frames with speech.
    """

    every: Level
    begun: np.ndarray
    open: np.ndarray
    spoken: Peaks

    def after(self, samples: np.ndarray) -> "StreamLevel":
        """Return the level after samples (N,)."""
        found, begun = peaks_of(self.begun, samples, _FRAME_SAMPLES)
        return StreamLevel(self.every.after(samples), begun, np.concatenate([self.open, found]), self.spoken)

    def told(self, spoken: np.ndarray) -> "StreamLevel":
        """Return the level after learning which of the next frames (t,) have speech."""
        known, still_open = np.split(self.open, [len(spoken)])
        return replace(self, open=still_open, spoken=self.spoken.also(known[spoken]))

    @property
    def value(self) -> float:
        """The level, as an amplitude."""
        every = self.every.audible  # a microphone that is muted says nothing about the level
        least = _FIRST_DB - _QUIETER_DB_S * every.seconds
        first, frames = max(every.with_silence, least), self.spoken.total
        return 10 ** ((_FIRST_FRAMES * first + frames * self.spoken.usual) / (_FIRST_FRAMES + frames) / 20)


NEW = StreamLevel(UNHEARD, UNHEARD.begun, np.zeros(0, dtype=np.float32), Peaks())
"""Before the first sample."""

"""The output of a live session after each block."""

from dataclasses import dataclass

import numpy as np

from sortformer.annotation import Turn

__all__ = ["Update"]


@dataclass(frozen=True, slots=True)
class Update:
    """The changes since the last update. Frames and turns are final; tentative turns may still change."""

    first_frame: int
    probs: np.ndarray  # (t, S) float32: frames from `first_frame` on; 0 for slots beyond the speaker limit
    turns: tuple[Turn, ...]
    tentative: tuple[Turn, ...]  # further turns if the stream ended now
    time_s: float  # end of the last final frame

    @property
    def speaking(self) -> tuple[str, ...]:
        """Who speaks at ``time_s``."""
        # A turn that is cut off by the end of the stream ends 10 ms early.
        return tuple(sorted(turn.speaker for turn in self.tentative if turn.end > self.time_s - 0.015))

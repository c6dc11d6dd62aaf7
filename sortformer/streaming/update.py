"""The output of a live session after each block."""

from dataclasses import dataclass

import numpy as np

from sortformer.annotation import Turn

__all__ = ["Update"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Update:
    """The changes since the last update. Frames and turns are final; tentative turns may still change.

    Attributes:
        first_frame: the first of the new frames, counted from 0.
        probs: (t, S) float32, the probabilities of the new frames; 0 for slots beyond the speaker limit.
        turns: those that have become final.
        tentative: further turns if the stream ended now.
        time_s: the end of the last final frame, in seconds.
    """

    first_frame: int
    probs: np.ndarray
    turns: tuple[Turn, ...]
    tentative: tuple[Turn, ...]
    time_s: float

    def __repr__(self) -> str:
        counts = f"turns={len(self.turns)}, tentative={len(self.tentative)}"
        return f"Update(time_s={self.time_s:.2f}, probs={self.probs.shape}, {counts}, speaking={self.speaking})"

    @property
    def speaking(self) -> tuple[str, ...]:
        """Who speaks at ``time_s``."""
        # A turn that is cut off by the end of the stream ends 10 ms early.
        return tuple(sorted(turn.speaker for turn in self.tentative if turn.end > self.time_s - 0.015))

"""Statistics of recordings: speech, overlap, speakers and turns."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from sortformer.annotation import Turn, merged
from sortformer.errors import counted
from sortformer.intervals import moments

__all__ = ["Statistics"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sums over recordings, which can be added.

    Attributes:
        recordings: their number, with or without turns.
        duration_s: their total duration, as far as known; annotated_s: of those with a reference.
        speech_s: time in which at least one speaker is active; overlap_s: at least two.
        turns: the number of turns, after joining those of one speaker that touch or overlap.
        turn_s: the total duration of these turns.
        speakers: the number of speakers of each recording with a reference.
    """

    recordings: int = 0
    duration_s: float = 0.0
    annotated_s: float = 0.0
    speech_s: float = 0.0
    overlap_s: float = 0.0
    turns: int = 0
    turn_s: float = 0.0
    speakers: tuple[int, ...] = ()

    @classmethod
    def of(cls, turns: Iterable[Turn] | None, duration_s: float | None) -> Statistics:
        """Return the statistics of one recording; ``turns`` is None if it has no reference."""
        length_s = duration_s or 0.0
        if turns is None:
            return cls(1, length_s)
        whole = merged(turns)
        speech = overlap = 0.0
        for start, end, active in moments((turn.start, turn.end, turn.speaker) for turn in whole):
            speech += (end - start) * (len(active) > 0)
            overlap += (end - start) * (len(active) > 1)
        spoken = sum(turn.duration for turn in whole)
        speakers = len({turn.speaker for turn in whole})
        return cls(1, length_s, length_s, speech, overlap, len(whole), spoken, (speakers,))

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(*map(operator.add, astuple(self), astuple(other)))

    def __str__(self) -> str:
        parts = [f"{counted(self.recordings, 'recording')}, {self.duration_s / 3600:.2f} h"]
        if self.speakers:
            share = 100 * self.speech_s / self.annotated_s if self.annotated_s else 0.0
            low, high = min(self.speakers), max(self.speakers)
            parts.append(f"{low} to {high} speakers (mean {sum(self.speakers) / len(self.speakers):.1f})")
            parts.append(f"speech {share:.1f} % of the time")
            parts.append(
                f"overlap {100 * self.overlap_s / self.speech_s if self.speech_s else 0.0:.1f} % of the speech"
            )
            parts.append(f"{self.turns} turns of {self.turn_s / self.turns if self.turns else 0.0:.2f} s on average")
        return ", ".join(parts)

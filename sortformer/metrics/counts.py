"""The counts behind the error rates, which add up over recordings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DerCounts", "JerCounts"]


@dataclass(frozen=True, slots=True)
class DerCounts:
    """The speaker times of a diarization error rate, in seconds or in frames; add them up over recordings."""

    total: float = 0.0
    miss: float = 0.0
    false_alarm: float = 0.0
    confusion: float = 0.0

    def __add__(self, other: DerCounts) -> DerCounts:
        return DerCounts(
            self.total + other.total,
            self.miss + other.miss,
            self.false_alarm + other.false_alarm,
            self.confusion + other.confusion,
        )

    @property
    def errors(self) -> float:
        """Miss, false alarm and confusion together."""
        return self.miss + self.false_alarm + self.confusion

    @property
    def rate(self) -> float:
        """Errors over reference speech; with no reference speech, 0 without errors and 1 with some."""
        if self.total == 0:
            return float(self.errors > 0)
        return self.errors / self.total


@dataclass(frozen=True, slots=True)
class JerCounts:
    """The sum of the Jaccard errors of the reference speakers, and their number (DIHARD II evaluation plan).

    ``false_speakers`` counts the speakers found in recordings without reference speakers, which have no Jaccard error.
    """

    errors: float = 0.0
    speakers: int = 0
    false_speakers: int = 0

    def __add__(self, other: JerCounts) -> JerCounts:
        return JerCounts(
            self.errors + other.errors,
            self.speakers + other.speakers,
            self.false_speakers + other.false_speakers,
        )

    @property
    def rate(self) -> float:
        """Mean Jaccard error over reference speakers; without any, 0 if no speaker was found, else 1, as in dscore."""
        return self.errors / self.speakers if self.speakers else float(self.false_speakers > 0)

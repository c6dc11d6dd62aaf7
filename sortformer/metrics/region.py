"""The scored region of a recording, and how it was determined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sortformer.annotation import Diarization, Turn, Turns
from sortformer.errors import InputError
from sortformer.intervals import Regions, union

__all__ = ["Parts", "Region", "scored_region"]

Parts = Iterable[tuple[float, float]]
"""Parts of a recording, start and end in seconds."""


@dataclass(frozen=True, slots=True)
class Region:
    """The scored parts (start, end) in seconds, sorted and disjoint, and their source."""

    parts: Regions
    basis: Literal["uem", "duration", "extent"]

    @property
    def duration(self) -> float:
        """The scored time in seconds."""
        return sum(end - start for start, end in self.parts)


def scored_region(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> Region:
    """Return the region to score: the UEM, else the whole recording if its duration is known, else the extent.

    The duration is known when one of the two is a :class:`Diarization` (if both are, the longer one counts). The extent
    is from the first start to the last end of both.

    Raises:
        InputError: when a side is not turns.
    """
    for side in (reference, hypothesis):
        if not isinstance(side, Diarization) and not (
            isinstance(side, Sequence) and all(isinstance(turn, Turn) for turn in side)
        ):
            raise InputError(
                f"each side must be a Diarization or a sequence of Turn, got {type(side).__name__}; "
                "Diarization.from_pyannote converts an Annotation"
            )
    if uem is not None:
        return Region(union(uem), "uem")
    durations = [each.duration for each in (reference, hypothesis) if isinstance(each, Diarization)]
    if durations:
        return Region(((0.0, max(durations)),), "duration")
    turns = [*reference, *hypothesis]
    if not turns:
        return Region((), "extent")
    return Region(((min(turn.start for turn in turns), max(turn.end for turn in turns)),), "extent")

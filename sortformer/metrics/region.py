"""Which part of a recording is scored, and how that was known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sortformer.annotation import Diarization, Turn, union
from sortformer.errors import InputError

__all__ = ["Parts", "Region", "Turns", "scored_region"]

Turns = Sequence[Turn] | Diarization
"""Who speaks when, of a recording whose duration is known where it is a diarization."""

Parts = Iterable[tuple[float, float]]
"""Parts of a recording, start and end in seconds."""


@dataclass(frozen=True, slots=True)
class Region:
    """The scored parts (start, end) in seconds, sorted and disjoint, and where they come from."""

    parts: tuple[tuple[float, float], ...]
    basis: Literal["uem", "duration", "extent"]

    @property
    def duration(self) -> float:
        """Seconds scored."""
        return sum(end - start for start, end in self.parts)


def scored_region(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> Region:
    """Return the region to score: the UEM, else the whole recording where its duration is known, else the extent.

    The duration is known when one of the two is a :class:`Diarization` (the longer one counts where both are). The
    extent runs from the first start to the last end of both.

    Raises:
        InputError: when a side is something else than turns.
    """
    for side in (reference, hypothesis):
        if not isinstance(side, Diarization) and not (
            isinstance(side, Sequence) and all(isinstance(turn, Turn) for turn in side)
        ):
            raise InputError(
                f"a Diarization is wanted on each side, or a sequence of Turn, got {type(side).__name__}; "
                "Diarization.from_pyannote makes one of an Annotation"
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

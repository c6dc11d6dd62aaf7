"""One recording of a manifest, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats.names import check_name, check_names_files
from sortformer.grid import LONGEST_S

__all__ = ["SLACK_S", "Draft", "Entry"]

SLACK_S = 0.1
"""By which times may lie past the end of a recording: durations are rounded, or of another format; so are turns."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One recording, or a window of one, and where to find who speaks when in it.

    Attributes:
        id: what it is called in RTTM and UEM.
        audio: the file.
        offset: where the window starts in the file, in seconds.
        duration: length in seconds; None is unknown, to the end of the file.
        rttm, uem: the reference and the parts to score, in the time of the file.
        num_speakers: how many speak, where that is known.

    Raises:
        InputError: when the id has white space or is no name for a file, a time is negative or not to be
            counted in samples, or fewer than none speak.
    """

    id: str
    audio: Path
    offset: float = 0.0
    duration: float | None = None
    rttm: Path | None = None
    uem: Path | None = None
    num_speakers: int | None = None

    def __post_init__(self) -> None:
        check_name(self.id, "recording")
        check_names_files(self.id)
        if not 0 <= self.offset <= LONGEST_S:
            raise InputError(f"the offset of {self.id!r} must be in [0, {LONGEST_S:g}] s, got {self.offset}")
        if self.num_speakers is not None and self.num_speakers < 0:
            raise InputError(f"num_speakers of {self.id!r} must be 0 or more, got {self.num_speakers}")
        if self.duration is not None and not 0 < self.duration <= LONGEST_S:
            raise InputError(f"the duration of {self.id!r} must be in (0, {LONGEST_S:g}] s, got {self.duration}")


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry, and its turns where no RTTM file of its own holds them: writing the manifest writes that too."""

    entry: Entry
    turns: tuple[Turn, ...] | None = None

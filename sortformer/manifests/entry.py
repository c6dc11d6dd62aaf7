"""The entry of a recording in a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats.names import check_name, check_names_files
from sortformer.grid import LONGEST_S

__all__ = ["SLACK_S", "Draft", "Entry"]

SLACK_S = 0.1
"""Tolerance for times after the end of a recording: durations and turns may be rounded, or from another format."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One recording, or a window of one, and its reference files.

    Attributes:
        id: its name in RTTM and UEM.
        audio: the audio file.
        offset: the start of the window in the file, in seconds.
        duration: in seconds; None if unknown, to the end of the file.
        rttm, uem: the files of the reference and of the parts to score, with times relative to the audio file.
        num_speakers: the number of speakers, if known.

    Raises:
        InputError: when the id is empty, has white space or is not a valid file name, a time is out of range, or the
            number of speakers is negative.
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
    """An entry, and its turns if it has no RTTM file of its own yet; writing the manifest writes that too."""

    entry: Entry
    turns: tuple[Turn, ...] | None = None

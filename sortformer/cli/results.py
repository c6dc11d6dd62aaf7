"""Where the results of recordings go: to stdout, or into a folder, one file a recording and format."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sortformer.annotation import Diarization
from sortformer.cli.console import say
from sortformer.cli.recordings import Recording
from sortformer.errors import InputError
from sortformer.formats import json, subtitles, transcript
from sortformer.formats.names import without_white_space
from sortformer.formats.write import check_folder, write_text
from sortformer.words import assign_speakers

__all__ = ["FORMATS", "SUBTITLES", "Results", "check_out", "formats_named", "say_as_in_rttm"]


def check_out(out: Path, overwrite: bool, *, folder: bool = False) -> None:
    """Make sure, before the work is done, that its one result can be written: a file, or the folder of a model.

    Raises:
        InputError: when it is there and ``overwrite`` is not set, is of the other kind, or cannot be written.
    """
    if out.exists() and not (out.is_file() or out.is_dir()):
        raise InputError(f"{out} is a pipe or a device: give a file's name with -o")
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists already; use --overwrite, or another name with -o")
    if out.exists() and out.is_dir() != folder:
        raise InputError(f"{out} is a {'file' if folder else 'folder'}: give another name with -o")
    check_folder(out.parent)


def say_as_in_rttm(*names: str) -> None:
    """Say which of these names of recordings and speakers are others in RTTM."""
    for name in names:
        if (written := without_white_space(name)) != name:
            say(f"note: {name!r} is called {written!r} in RTTM, which cannot express white space")


FORMATS: dict[str, Callable[[Diarization], str]] = {
    "rttm": Diarization.to_rttm,
    "json": Diarization.to_json,
    "txt": Diarization.to_text,
}

SUBTITLES = ("srt", "vtt")
"""Formats that need the words, too."""


def formats_named(names: str) -> tuple[str, ...]:
    """Return the formats in a list like ``rttm,json``, without repeats.

    Raises:
        InputError: when one is not known.
    """
    chosen, known = tuple(dict.fromkeys(name.strip().lower() for name in names.split(","))), (*FORMATS, *SUBTITLES)
    for name in chosen:
        if name not in known:
            raise InputError(f"there is no format {name!r}; choose from {', '.join(known)}")
    return chosen


@dataclass(frozen=True, slots=True)
class Results:
    """How results are written; a file is written whole or not at all, JSON of ``several`` on stdout as JSON lines.

    ``transcripts`` is the file with the words of a recording, or a folder that has one for each by its name.

    Raises:
        InputError: when these wishes contradict each other.
    """

    folder: Path | None
    formats: tuple[str, ...]
    overwrite: bool = False
    skip_existing: bool = False
    several: bool = False
    transcripts: Path | None = None

    def __post_init__(self) -> None:
        said = [name for name in self.formats if name in SUBTITLES]
        if said and self.transcripts is None:
            raise InputError(f"-f {said[0]} needs the words: give the transcript with --words")
        if self.transcripts is not None and not said:
            raise InputError(f"--words is for subtitles: choose one of {', '.join(SUBTITLES)} with -f")
        if said and self.several and self.folder is None:
            raise InputError("subtitles of several recordings do not fit on stdout: give a folder with -o")
        if self.several and self.transcripts is not None and not self.transcripts.is_dir():
            raise InputError(
                f"{self.transcripts} is not of several recordings: give a folder of transcripts to --words"
            )
        if self.overwrite and self.skip_existing:
            raise InputError("give either --overwrite or --skip-existing, not both")
        if self.folder is None and self.skip_existing:
            raise InputError("--skip-existing looks for results in a folder: give one with -o")
        if self.folder is None and self.overwrite:
            raise InputError("--overwrite replaces results in a folder: give one with -o")
        if self.folder is None and len(self.formats) > 1:
            raise InputError("several formats do not fit on stdout: give a folder with -o")

    def prepare(self) -> None:
        """Make the folder, so that a bad one is known before the work is done.

        Raises:
            InputError: when it cannot be made or written to.
        """
        if self.folder is not None:
            check_folder(self.folder)

    def wanted(self, recording: Recording) -> tuple[str, ...]:
        """Return the formats that are still to be written for a recording.

        Raises:
            InputError: when a file is there already, and neither overwriting nor skipping was asked for; or there is no
                transcript of the recording.
        """
        if self.transcripts is not None and not self._transcript(recording).is_file():
            raise InputError(f"{self._transcript(recording)} does not exist: --words needs the words of each recording")
        if self.folder is None or self.overwrite:
            return self.formats
        there = [name for name in self.formats if self._path(recording, name).exists()]
        if there and not self.skip_existing:
            raise InputError(
                f"{self._path(recording, there[0])} exists already; use --overwrite, --skip-existing or another folder"
            )
        return tuple(name for name in self.formats if name not in there)

    def write(self, recording: Recording, result: Diarization, formats: tuple[str, ...], *, first: bool = True) -> None:
        """Write the result of a recording in these formats; on stdout, a blank line divides texts after the first."""
        if "rttm" in formats:
            say_as_in_rttm(recording.name, *result.speakers)
        for name in formats:
            if self.folder is None:
                if name == "json":
                    ascii_only = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
                    content = json.format(result, one_line=self.several, ascii_only=ascii_only)
                else:
                    content = self._content(recording, result, name)
                sys.stdout.write(content if first or name != "txt" else f"\n{content}")
                sys.stdout.flush()
            else:
                write_text(
                    self._path(recording, name), self._content(recording, result, name), overwrite=self.overwrite
                )

    def _content(self, recording: Recording, result: Diarization, name: str) -> str:
        if name in FORMATS:
            return FORMATS[name](result)
        words = assign_speakers(transcript.read(self._transcript(recording)), result)
        return subtitles.format(words, name)  # pyright: ignore[reportArgumentType]

    def _transcript(self, recording: Recording) -> Path:
        assert self.transcripts is not None
        return self.transcripts / f"{recording.name}.json" if self.transcripts.is_dir() else self.transcripts

    def _path(self, recording: Recording, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{recording.name}.{name}"

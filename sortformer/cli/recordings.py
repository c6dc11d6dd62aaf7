"""Resolution of command line arguments to recordings."""

import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sortformer.config.channel import EACH, Channel
from sortformer.errors import InputError
from sortformer.formats.folders import AUDIO_SUFFIXES, is_visible_file
from sortformer.formats.names import in_unicode, without_white_space
from sortformer.grid import SAMPLE_RATE
from sortformer.manifests import is_manifest
from sortformer.manifests.entry import SLACK_S
from sortformer.manifests.jsonl import read_some
from sortformer.warned import warn, warned

__all__ = ["Recording", "namesakes", "once", "recordings"]


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording: its source, display name, and window of the file (duration None: to the end)."""

    source: Path | BinaryIO
    name: str
    offset_s: float = 0.0
    duration_s: float | None = None
    num_speakers: int | None = None  # from a manifest

    @property
    def path(self) -> str:
        """The path of its file, or its name if it has none."""
        return in_unicode(str(self.source)) if isinstance(self.source, Path) else self.name

    @property
    def file_name(self) -> str:
        """The name of its file without suffix, or its name if it has none."""
        return in_unicode(self.source.stem) if isinstance(self.source, Path) else self.name

    @property
    def id(self) -> str:
        """The name as RTTM and UEM can express it."""
        return without_white_space(self.name)

    @property
    def ids(self) -> list[str]:
        """Names under which a UEM or a CTM may list it: its id and, for a window, also that of its file."""
        return [self.id, *([without_white_space(self.file_name)] if self.is_window() else [])]

    @property
    def piped(self) -> bool:
        """Whether it comes through a pipe, which may block indefinitely."""
        return not (isinstance(self.source, Path) and self.source.is_file())

    def heard(self, channel: Channel | None = None) -> dict[str, Any]:
        """Return the arguments ``audio`` and ``channel`` of a diarizer; a file is decoded up to the end of the window.

        Raises:
            InputError: when a window cannot be read, starts after the end of its file, or is too short.

        Warns:
            SortformerWarning: when the file ends before the window does.
        """
        if not self.is_window():
            if self.duration_s is not None:
                self._check_end(_length_s(self.source))
            return {"audio": self.source, "channel": channel}
        from sortformer.audio import crop, num_channels
        from sortformer.audio.reading import SHORTEST_S

        each = channel == EACH
        wanted: Any = range(1, num_channels(self.source) + 1) if each else [channel]
        waves = [crop(self.source, self.offset_s, self.duration_s, one) for one in wanted]
        wave = np.stack(waves, axis=1) if each else waves[0]  # not a copy of what may be hours
        if not len(wave):
            raise InputError(f"{self.source} ends before {self.offset_s:g} s, where {self.name!r} starts")
        if len(wave) < SHORTEST_S * SAMPLE_RATE:
            raise InputError(
                f"{self.name} holds only {len(wave) / SAMPLE_RATE:.3f} s of audio: at least {SHORTEST_S} s is needed"
            )
        self._check_end(self.offset_s + len(wave) / SAMPLE_RATE)
        audio = {"waveform": wave, "sample_rate": SAMPLE_RATE, "uri": self.name}
        return {"audio": audio, "channel": channel if each else None}

    def is_window(self) -> bool:
        """Return whether it is a part of its file; a manifest may also give the whole duration of the file."""
        if self.offset_s or self.duration_s is None:
            return self.offset_s > 0
        # A pipe can be read only once, and may go on.
        return self.piped or _length_s(self.source) > self.duration_s + SLACK_S

    def _check_end(self, found_s: float) -> None:
        """Warn if what was found of the file ends before the window does."""
        if self.duration_s is not None and found_s + SLACK_S < (end_s := self.offset_s + self.duration_s):
            warn(
                f"{self.name} should end at {end_s:.2f} s of {self.source}, but the file ends at {found_s:.2f} s",
                stacklevel=2,
            )


@cache
def _length_s(source: Path | BinaryIO) -> float:
    """Return the duration of a file in seconds; damage is reported when the file is read for its audio."""
    from sortformer.manifests.tree import duration_of

    with warned(shown=False):
        return duration_of(source)


def recordings(argument: str) -> Iterator[Recording]:
    """Yield the recordings of an argument: a file, a folder (not its subfolders), a manifest, or stdin (``-``).

    Raises:
        InputError: when a folder has no audio, a manifest is invalid, or stdin is a terminal.
    """
    path = Path(argument)
    if argument == "-":
        if sys.stdin.isatty():
            raise InputError("'-' reads a recording from stdin: pipe one in, or name a file")
        yield Recording(sys.stdin.buffer, "stdin")
    elif path.is_dir():
        files = sorted(
            file for file in path.iterdir() if file.suffix.lower() in AUDIO_SUFFIXES and is_visible_file(file)
        )
        if not files:
            deeper = any(each.is_dir() for each in path.iterdir())
            hint = (
                "subfolders are not searched: name them" if deeper else "name the files if their suffixes are unusual"
            )
            raise InputError(f"the folder {path} has no audio files; {hint}")
        yield from (Recording(file, in_unicode(file.stem)) for file in files)
    elif is_manifest(path):
        yield from (
            Recording(entry.audio, entry.id, entry.offset, entry.duration, entry.num_speakers)
            for entry in read_some(path)
        )
    else:
        yield Recording(path, in_unicode(path.stem))


def once(found: Iterable[Recording]) -> list[Recording]:
    """Return the recordings without duplicates; a file under two names counts as two, with separate results."""
    return list({(each.name, _place(each), each.offset_s, each.duration_s): each for each in found}.values())


def namesakes(
    found: Iterable[Recording], extensions: Iterable[str] = ("",), *, ignore_case: bool = False
) -> dict[Recording, InputError]:
    """Return an error for each recording with the same name as another: their results would overwrite each other.

    So would the JSON of ``talk.seglst`` and the SegLST of ``talk``: ``extensions`` are those of the results.
    ``ignore_case`` is for folders in which names that differ in case only are one file.
    """
    named: dict[str, list[Recording]] = {}
    for each, extension in itertools.product(found, extensions):
        file_name = f"{each.id}.{extension}"
        named.setdefault(file_name.casefold() if ignore_case else file_name, []).append(each)
    return {
        each: InputError(
            f"{each.path} and {other.path} are {_both_named(each.id, other.id)}, and so would be their results: rename "
            "one, give each a 'uniq_id' in a manifest, or process them separately, into two folders"
        )
        for alike in named.values()
        for each, other in zip(alike, [*alike[1:], alike[0]], strict=True)
        if other is not each
    }


def _both_named(one: str, other: str) -> str:
    return f"both named {one!r}" if one == other else f"named {one!r} and {other!r}, one file name in this folder"


def _place(recording: Recording) -> str:
    return os.path.realpath(recording.source) if isinstance(recording.source, Path) else recording.name

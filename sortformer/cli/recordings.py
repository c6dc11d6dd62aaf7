"""From the arguments of a command to the recordings that they mean."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sortformer.errors import InputError
from sortformer.formats.names import file_ids, without_white_space

__all__ = ["AUDIO_SUFFIXES", "Recording", "distinct", "recordings"]

AUDIO_SUFFIXES = frozenset(
    f".{suffix}"
    for line in (
        "wav flac ogg oga opus mp3 m4a m4b mp4 aac",
        "webm mkv mka mov avi 3gp wma aif aiff aifc au caf w64 rf64",
    )
    for suffix in line.split()
)
"""What is taken from a folder; a file that is named itself may have any suffix."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording: where it is read from, and its display name."""

    source: Path | BinaryIO
    name: str

    @property
    def id(self) -> str:
        """The name as RTTM and UEM can express it."""
        return without_white_space(self.name)


def recordings(argument: str) -> Iterator[Recording]:
    """Yield what one argument means: a file, the audio files directly in a folder, or (``-``) stdin.

    Raises:
        InputError: when a folder has no audio, or nothing comes through stdin.
    """
    path = Path(argument)
    if argument == "-":
        if sys.stdin.isatty():
            raise InputError("'-' reads a recording from stdin: pipe one in, or name a file")
        yield Recording(sys.stdin.buffer, "stdin")
    elif path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in AUDIO_SUFFIXES and file.is_file())
        if not files:
            raise InputError(f"the folder {path} has no audio files; name the files if their suffixes are unusual")
        yield from (Recording(file, file.stem) for file in files)
    else:
        yield Recording(path, path.stem)


def distinct(found: Iterable[Recording]) -> list[Recording]:
    """Return the recordings without those that were named twice.

    Raises:
        InputError: when two that differ have one name, because their results would overwrite each other.
    """
    once = {each.source.resolve() if isinstance(each.source, Path) else Path(each.name): each for each in found}
    file_ids(once)
    return list(once.values())

"""RTTM and UEM given as one file about any number of recordings, or as a folder of such files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats import rttm
from sortformer.formats.names import without_white_space
from sortformer.formats.uem import Regions
from sortformer.formats.uem import read as read_uem

__all__ = ["files_in", "turns_in", "uem_in"]

Value = TypeVar("Value")


def turns_in(path: Path) -> dict[str, tuple[Turn, ...]]:
    """Return the turns that an RTTM file or folder gives each recording; none at all for a single file without a turn.

    A file of a folder without a turn stands for a recording of its own name in which nobody speaks.

    Raises:
        InputError: when the path is missing or broken, or two files hold the same recording.
    """
    if not path.is_dir():
        return rttm.read(path)
    return _gather(path, ".rttm", lambda file: rttm.read(file) or {without_white_space(file.stem): ()})


def uem_in(path: Path) -> dict[str, Regions]:
    """Return the regions that a UEM file or folder gives each recording; errors as for turns."""
    return _gather(path, ".uem", read_uem)


def files_in(path: Path, suffix: str) -> list[Path]:
    """Return the files of a folder that end in a suffix, sorted; what is no folder is itself the one file.

    Raises:
        InputError: when the folder has none.
    """
    files = sorted(file for file in path.iterdir() if file.suffix.lower() == suffix) if path.is_dir() else [path]
    if not files:
        raise InputError(f"the folder {path} has no {suffix} files")
    return files


def _gather(path: Path, suffix: str, read: Callable[[Path], Mapping[str, Value]]) -> dict[str, Value]:
    """What a file, or all files of a folder with that suffix, say about each recording."""
    found: dict[str, Value] = {}
    where: dict[str, Path] = {}
    for file in files_in(path, suffix):
        for uri, value in read(file).items():
            if uri in where:
                raise InputError(f"{where[uri]} and {file} both hold the recording {uri!r}")
            found[uri], where[uri] = value, file
    return found

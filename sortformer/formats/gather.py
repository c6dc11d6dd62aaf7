"""RTTM, TextGrids and UEM given as one file about any number of recordings, or as a folder of such files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats import rttm, textgrid
from sortformer.formats.names import names_file, without_white_space
from sortformer.formats.uem import Regions
from sortformer.formats.uem import read as read_uem

__all__ = ["files_in", "turns_in", "uem_in"]

Value = TypeVar("Value")

_TEXTGRID = ".textgrid"


def turns_in(path: Path) -> dict[str, tuple[Turn, ...]]:
    """Return the turns that an RTTM file or folder gives each recording; none at all for a single file without a turn.

    A file of a folder without a turn stands for a recording of its own name in which nobody speaks. A TextGrid, by its
    suffix, is about the recording of its own name; those of a folder count where it has no RTTM.

    Raises:
        InputError: when the path is missing or broken, or two files hold the same recording.
    """
    if not path.is_dir():
        return _turns(path)
    return _gather(path, (".rttm", _TEXTGRID), lambda file: _turns(file) or {without_white_space(file.stem): ()})


def _turns(file: Path) -> dict[str, tuple[Turn, ...]]:
    if file.suffix.lower() == _TEXTGRID:
        return {without_white_space(file.stem): textgrid.read(file)}
    return rttm.read(file)


def uem_in(path: Path) -> dict[str, Regions]:
    """Return the regions that a UEM file or folder gives each recording; errors as for turns."""
    return _gather(path, (".uem",), read_uem)


def files_in(path: Path, *suffixes: str) -> list[Path]:
    """Return the files of a folder, sorted, with the first of the suffixes (in lower case) that any file there has.

    Hidden ones are passed over. A path that is no folder is itself the one file.

    Raises:
        InputError: when the folder has none.
    """
    if not path.is_dir():
        return [path]
    for suffix in suffixes:
        if files := sorted(file for file in path.iterdir() if file.suffix.lower() == suffix and names_file(file)):
            return files
    raise InputError(f"the folder {path} has no {' or '.join(suffixes)} files")


def _gather(path: Path, suffixes: tuple[str, ...], read: Callable[[Path], Mapping[str, Value]]) -> dict[str, Value]:
    """What a file says about each recording, or the files of a folder (see :func:`files_in`) together."""
    found: dict[str, Value] = {}
    where: dict[str, Path] = {}
    for file in files_in(path, *suffixes):
        for uri, value in read(file).items():
            if uri in where:
                raise InputError(f"{where[uri]} and {file} both hold the recording {uri!r}")
            found[uri], where[uri] = value, file
    return found

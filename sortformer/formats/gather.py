"""Turns and UEM given as one file about any number of recordings, or as a folder of such files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats import json, rttm, seglst, stm, textgrid
from sortformer.formats.names import names_file, without_white_space
from sortformer.formats.source import read_text
from sortformer.formats.uem import Regions
from sortformer.formats.uem import read as read_uem

__all__ = ["files_in", "holds_turns", "turns_in", "uem_in"]

Value = TypeVar("Value")

_SEGLST = ".seglst.json"


def turns_in(path: Path) -> dict[str, tuple[Turn, ...]]:
    """Return the turns that a file or a folder of them gives each recording; none at all for a file without a turn.

    What a name ends in says what the file is: RTTM, a TextGrid about the recording of its own name, STM, or JSON, which
    is SegLST where it is a list and otherwise what ``Diarization.to_json`` writes, once or a line a recording. Of a
    folder those count that come first in this order. Its files without a turn stand for recordings of their own names
    in which nobody speaks.

    Raises:
        InputError: when the path is missing or broken, or two files hold the same recording.
    """
    if not path.is_dir():
        return _turns(path)
    return _gather(path, tuple(_READERS), lambda file: _turns(file) or {_own_name(file): ()})


def holds_turns(path: Path) -> bool:
    """Return whether a JSON file holds turns as :func:`turns_in` reads them, and is not a manifest of lines.

    Raises:
        InputError: when the file is missing or no text.
    """
    content = read_text(path)
    return content.lstrip().startswith("[") or '"schema_version"' in content


def _turns(file: Path) -> dict[str, tuple[Turn, ...]]:
    return _READERS.get(_suffix(file), rttm.read)(file)


def _suffix(file: Path) -> str:
    """The suffix of a file in lower case, both of ``.seglst.json``."""
    return _SEGLST if file.name.lower().endswith(_SEGLST) else file.suffix.lower()


def _own_name(file: Path) -> str:
    return without_white_space(file.name[: len(file.name) - len(_suffix(file))])


def _textgrid(file: Path) -> dict[str, tuple[Turn, ...]]:
    return {_own_name(file): textgrid.read(file)}


def _json(file: Path) -> dict[str, tuple[Turn, ...]]:
    content = read_text(file)
    if content.lstrip().startswith("["):
        return seglst.parse(content, str(file))
    first = content.strip().partition("\n")[0]
    several = first.rstrip().endswith("}")  # of an indented document the first line does not end it
    recordings = json.parse_lines(content, str(file)) if several else [json.parse(content, str(file))]
    return {without_white_space(recording.uri): recording.turns for recording in recordings}


_READERS: dict[str, Callable[[Path], dict[str, tuple[Turn, ...]]]] = {
    ".rttm": rttm.read,
    ".textgrid": _textgrid,
    ".stm": stm.read,
    _SEGLST: seglst.read,
    ".json": _json,
    ".jsonl": _json,
}


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
        if files := sorted(file for file in path.iterdir() if _suffix(file) == suffix and names_file(file)):
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

"""Turns and UEM from one file about any number of recordings, or from a folder of such files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from sortformer.annotation import Turn, Turns
from sortformer.errors import InputError
from sortformer.formats import audacity, eaf, json, rttm, seglst, stm, textgrid, uem
from sortformer.formats.folders import is_visible_file
from sortformer.formats.names import in_unicode, without_white_space
from sortformer.formats.source import read_text
from sortformer.intervals import Regions
from sortformer.warned import warn

__all__ = [
    "KINDS",
    "TURN_SUFFIXES",
    "files_in",
    "holds_turns",
    "is_rttm",
    "name_in",
    "own_name",
    "results_in",
    "turns_in",
    "uem_in",
    "warn_of_kinds",
    "warn_of_others",
]

Value = TypeVar("Value")

_SEGLST, _LABELS = ".seglst.json", ".labels.txt"


def turns_in(path: Path) -> dict[str, tuple[Turn, ...]]:
    """Return the turns by recording id from a file or a folder of files; empty for a file without a turn.

    The extension decides the format: TextGrid, EAF or Audacity's labels (about the recording with the file's name),
    STM, JSON (SegLST if it is a list, else documents of ``Diarization.to_json``, one or as JSON lines), or else RTTM.
    In a folder only the files of one extension are read, the first of ``TURN_SUFFIXES`` that occurs; a file without a
    turn means that nobody speaks in the recording of its name.

    Raises:
        InputError: when the path is missing or broken, or two files hold the same recording.
    """
    found = results_in(path) if path.is_dir() else _results(path)
    return {uri: tuple(each) for uri, each in found.items()}


def results_in(path: Path) -> dict[str, Turns]:
    """Return what is known by recording id: as for turns, but JSON of ``Diarization.to_json`` and TextGrids whole."""
    return _gather(path, TURN_SUFFIXES, lambda file: _results(file) or {own_name(file): ()})


def name_in(file: Path, uri: str) -> str:
    """Return the name of a recording in a file: that of the file if the id is the same, but for white space."""
    return _stem(file) if own_name(file) == uri else uri


def holds_turns(path: Path) -> bool:
    """Return whether a JSON file holds turns that :func:`turns_in` can read, rather than a manifest.

    Raises:
        InputError: when the file is missing or not text.
    """
    content = read_text(path)
    return content.lstrip().startswith("[") or '"schema_version"' in content


def is_rttm(file: Path) -> bool:
    """Return whether :func:`turns_in` reads a file as RTTM."""
    return _suffix(file) not in _READERS or _suffix(file) == ".rttm"


def _results(file: Path) -> Mapping[str, Turns]:
    return _READERS.get(_suffix(file), rttm.read)(file)


def _suffix(file: Path) -> str:
    """Return the suffix of a file in lower case; ``.seglst.json`` and ``.labels.txt`` count as one."""
    name = file.name.lower()
    return next((suffix for suffix in (_SEGLST, _LABELS) if name.endswith(suffix)), file.suffix.lower())


def own_name(file: Path) -> str:
    """Return the id of the recording with the name of a file of turns, whose suffix may be a compound one."""
    return without_white_space(_stem(file))


def _stem(file: Path) -> str:
    return in_unicode(file.name[: len(file.name) - len(_suffix(file))])


def _by_file_name(read: Callable[[Path], Turns]) -> Callable[[Path], dict[str, Turns]]:
    """Return a reader of a format that does not contain the id of the recording."""
    return lambda file: {own_name(file): read(file)}


def _json(file: Path) -> Mapping[str, Turns]:
    content = read_text(file)
    if content.lstrip().startswith("["):
        return seglst.parse(content, str(file))
    first = content.strip().partition("\n")[0]
    several = first.rstrip().endswith("}")  # a single document is indented, so its first line does not end it
    recordings = json.parse_lines(content, str(file)) if several else [json.parse(content, str(file))]
    found = dict[str, Turns]()
    for recording in recordings:
        if (uri := without_white_space(recording.uri)) in found:
            raise InputError(f"{file} contains the recording {uri!r} twice: keep only one")
        found[uri] = recording
    return found


_READERS: dict[str, Callable[[Path], Mapping[str, Turns]]] = {
    ".rttm": rttm.read,
    ".textgrid": _by_file_name(textgrid.read),
    ".eaf": _by_file_name(eaf.read),
    ".stm": stm.read,
    _SEGLST: seglst.read,
    ".json": _json,
    ".jsonl": _json,
    _LABELS: _by_file_name(audacity.read),
}

TURN_SUFFIXES = tuple(_READERS)
"""The extensions of the formats of turns, in lower case; in a folder the first that occurs is read."""


KINDS = tuple(suffix for suffix in TURN_SUFFIXES if suffix not in (".json", ".jsonl"))
"""Those without JSON, which beside others may be a transcript or a manifest."""


def warn_of_others(path: Path) -> None:
    """Warn if a folder has turns of several kinds, as :func:`turns_in` reads the first: others may be corrected."""
    if path.is_dir():
        there = {_suffix(file) for file in path.iterdir() if is_visible_file(file)}
        warn_of_kinds(path, [kind for kind in KINDS if kind in there])


def warn_of_kinds(place: Path, kinds: Sequence[str]) -> None:
    """Warn if a place has turns of several kinds, of which the first is read."""
    if len(kinds) > 1:
        warn(
            f"{place} has turns in {' and '.join(kinds)}: using only those in {kinds[0]}; for others, give a folder "
            "without these, or convert them with `sortformer export`",
            stacklevel=4,
        )


def uem_in(path: Path) -> dict[str, Regions]:
    """Return the regions by recording id from a UEM file or a folder of them; errors as for turns."""
    return _gather(path, (".uem",), uem.read)


def files_in(path: Path, *suffixes: str) -> list[Path]:
    """Return the files of a folder, sorted, with the first of the suffixes (in lower case) that occurs in it.

    Hidden files are ignored. If the path is not a folder, it is the only file.

    Raises:
        InputError: when the folder has no such files.
    """
    if not path.is_dir():
        return [path]
    for suffix in suffixes:
        if files := sorted(file for file in path.iterdir() if _suffix(file) == suffix and is_visible_file(file)):
            return files
    raise InputError(f"the folder {path} has no {' or '.join(suffixes)} files")


def _gather(path: Path, suffixes: tuple[str, ...], read: Callable[[Path], Mapping[str, Value]]) -> dict[str, Value]:
    """Return the content of a file, or of the files of a folder (see :func:`files_in`), by recording id."""
    found: dict[str, Value] = {}
    where: dict[str, Path] = {}
    for file in files_in(path, *suffixes):
        for uri, value in read(file).items():
            if uri in where:
                raise InputError(f"{where[uri]} and {file} both contain the recording {uri!r}: give one of them")
            found[uri], where[uri] = value, file
    return found

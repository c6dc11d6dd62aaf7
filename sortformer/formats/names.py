"""Names of recordings and speakers, within what the formats can express."""

import os
import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

from sortformer.annotation import Diarization
from sortformer.errors import InputError
from sortformer.unnamed import is_label

__all__ = [
    "check_name",
    "check_names_files",
    "check_path",
    "check_person",
    "composed",
    "in_unicode",
    "one_line",
    "renamed",
    "without_folder",
    "without_white_space",
]

_LONGEST_NAME = 255  # characters: every turn has the name, so long names would inflate results
_UNWRITABLE = ("Cc", "Cs", "Zl", "Zp")  # control characters, surrogates, line and paragraph separators

_REFUSED_BY_WINDOWS = ':*?"<>|'  # or worse: what follows a colon would be a hidden stream of an empty file
_DEVICES_OF_WINDOWS = {"CON", "PRN", "AUX", "NUL", *(port + each for port in ("COM", "LPT") for each in "123456789¹²³")}

# The name of a file may have them, as may one that a client sends: terminals would obey them.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def without_white_space(name: str) -> str:
    """Return the name with each run of white space as ``_``; RTTM separates by white space and has no escaping.

    Control characters count as white space. The result is ``composed``.
    """
    return "_".join(_parts(composed(name))) or "_"


def composed(name: str) -> str:
    """Return a name in Unicode's NFC, as keyboards type it: some systems decompose the letters of file names."""
    return unicodedata.normalize("NFC", name)


def one_line(name: str) -> str:
    """Return the name with each run of white space or control characters as one space, for formats of lines or tabs."""
    return " ".join(_parts(name)) or "_"


def _parts(name: str) -> list[str]:
    return _CONTROLS.sub(" ", name).split()


def renamed(recording: Diarization, written: Callable[[str], str], format: str) -> Diarization:
    """Return the recording with its speakers renamed by ``written``, for a format that cannot express all white space.

    Raises:
        InputError: when two speakers get the same name; ``format`` is the format's name in the message.
    """
    names = {speaker: written(speaker) for speaker in recording.speakers}
    if len(set(names.values())) < len(names):
        raise InputError(
            f"two speakers of {recording.uri} have the same name except for white space, which {format} cannot "
            "express: rename one"
        )
    return recording.relabel(names)


def in_unicode(name: str) -> str:
    """Return a name, or other text, with ? in place of what UTF-8 cannot encode: lone surrogates.

    Python uses them for the undecodable bytes of file names.
    """
    return name.encode("utf-8", "replace").decode("utf-8")


def without_folder(message: str, *paths: str) -> str:
    """Return a message with the names of files in place of their paths, for results: these name no folders."""
    message = in_unicode(message)
    for path in sorted(map(in_unicode, paths), key=len, reverse=True):  # one may be the end of another
        message = message.replace(path, os.path.basename(path))
    return message


def check_name(name: str, kind: str) -> str:
    """Return the name if RTTM and UEM can express it.

    Raises:
        InputError: when it is empty, or contains white space or control characters; ``kind`` says in the message what
            it names.
    """
    if not name:
        raise InputError(f"the {kind} is empty, which RTTM does not allow; give it a name")
    if _parts(name) != [name]:
        wanted = without_white_space(name)
        raise InputError(
            f"the {kind} {name!r} has white space or control characters, which RTTM does not allow; write {wanted!r}"
        )
    return name


def check_names_files(id: str) -> str:
    """Return the id of a recording if it can be used as a file name.

    Raises:
        InputError: when it is only dots, or contains a path separator of this system, a null character, or, if this
            is Windows, what it refuses; or is there the name of a device, whatever follows a dot.
    """
    if not id.strip("."):
        raise InputError(f"the id {id!r} is used as a file name, so it must not be only dots")
    if wrong := {"/", os.sep, "\0", *(_REFUSED_BY_WINDOWS if os.sep == "\\" else "")} & set(id):
        raise InputError(f"the id {id!r} is used as a file name: write - instead of {min(wrong)!r}")
    if os.sep == "\\" and id.partition(".")[0].rstrip().upper() in _DEVICES_OF_WINDOWS:
        raise InputError(f"the id {id!r} is used as a file name, and a device of Windows has it: choose another")
    return id


def check_path(path: Path) -> None:
    """Check that the absolute path of a file can be written in a list of recordings, as a line of UTF-8.

    Raises:
        InputError: if it cannot.
    """
    whole = os.path.realpath(path)
    if in_unicode(whole) != whole or set("\t\r\n") & set(whole):
        raise InputError(f"the path {in_unicode(whole)!r} has tabs, line breaks or invalid characters: rename it")


def check_person(name: str, taken: Iterable[str] = ()) -> None:
    """Refuse a person's name that is empty, too long, taken, a label of the toolkit, or not one line of plain text.

    RTTM writes white space as ``_``, so names that differ in white space only count as the same.

    Raises:
        InputError: if the name is refused.
    """
    if not isinstance(name, str):
        raise InputError(f"the name of a person must be a string, got {name!r}")
    if len(name) > _LONGEST_NAME:
        raise InputError(f"the name {name[:20]!r}... has more than {_LONGEST_NAME} letters: choose another")
    if not name.strip():
        raise InputError(f"the name {name!r} is empty: choose another")
    if name != name.strip():
        raise InputError(f"the name {name!r} begins or ends with white space: remove it")
    if any(unicodedata.category(letter) in _UNWRITABLE for letter in name):
        raise InputError(f"the name {name!r} has control or invalid characters: choose another")
    written = without_white_space(name)
    if written in map(without_white_space, taken):
        raise InputError(f"the name {name!r} is given twice: choose another")
    if is_label(written):
        raise InputError(f"the name {name!r} is a label of the toolkit: choose another")

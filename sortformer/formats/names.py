"""Names of recordings and speakers: what RTTM and UEM can express."""

import os
from pathlib import Path

from sortformer.errors import InputError

__all__ = ["AUDIO_SUFFIXES", "check_name", "in_unicode", "names_file", "without_white_space"]

AUDIO_SUFFIXES = frozenset(
    f".{suffix}"
    for line in (
        "wav flac ogg oga opus mp3 m4a m4b mp4 aac",
        "webm mkv mka mov avi 3gp wma aif aiff aifc au caf w64 rf64 sph",
    )
    for suffix in line.split()
)
"""What is taken from a folder of recordings; a file that is named itself may have any suffix."""


def names_file(path: Path) -> bool:
    """Return whether what a folder holds is meant as a file: it is one, or a link to what is not there.

    So it is with git-annex, where the content was not fetched: that must fail as missing, not be passed over.
    """
    return os.path.isfile(path) or (os.path.islink(path) and not os.path.exists(path))


def without_white_space(name: str) -> str:
    """Return the name with each run of white space as ``_``; RTTM separates by white space and has no escaping."""
    return "_".join(name.split()) or "_"


def in_unicode(name: str) -> str:
    """Return the name with ? for bytes of a file's name that are no characters in the encoding of file names."""
    return name.encode("utf-8", "replace").decode("utf-8")


def check_name(name: str, kind: str) -> str:
    """Return the name if RTTM and UEM can express it.

    Raises:
        InputError: when it is empty or contains white space; ``kind`` says what it names.
    """
    if not name:
        raise InputError(f"the {kind} is empty, which RTTM cannot express; give it a name")
    if name.split() != [name]:
        wanted = without_white_space(name)
        raise InputError(f"the {kind} {name!r} contains white space, which RTTM cannot express; write {wanted!r}")
    return name

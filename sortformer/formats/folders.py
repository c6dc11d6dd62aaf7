"""What is read from a folder: files that are not hidden, and of these as recordings the ones with a known suffix."""

import os
from pathlib import Path

__all__ = ["AUDIO_SUFFIXES", "is_visible_file"]

AUDIO_SUFFIXES = frozenset(
    f".{suffix}"
    for line in (
        "wav bwf flac ogg oga opus spx mp2 mpa mp3 m4a m4b mp4 m4v aac ac3 eac3 ec3 amr awb g722 gsm sln",
        "webm weba mkv mka mov avi flv ogv 3gp 3g2 wma wmv asf mpg mpeg vob mts m2ts m2t mxf",
        "aif aiff aifc au caf w64 rf64 sph",
    )
    for suffix in line.split()
)
"""The suffixes of files that are read from a folder; a file that is given itself may have any suffix."""


def is_visible_file(path: Path) -> bool:
    """Return whether an entry of a folder is to be read as a file: a file or a broken link, and not hidden.

    Broken links are files of git-annex whose content was not fetched: they must fail as missing, not be ignored. Hidden
    files are, for example, those that macOS leaves on other disks, ``._talk.wav`` beside ``talk.wav``.
    """
    return not path.name.startswith(".") and (os.path.isfile(path) or not os.path.exists(path))

"""Audacity labels: one line per turn, with start, end (seconds) and speaker, separated by tabs.

The standard format of Audacity's manual ("Importing and Exporting Labels"), in UTF-8. Its File > Import > Labels looks
for ``.txt``, so files end in ``.labels.txt``. A label cannot contain tabs or line breaks: white space in names becomes
spaces. Times are written in whole milliseconds.
"""

import os

from sortformer.annotation import Diarization
from sortformer.formats.milliseconds import in_milliseconds
from sortformer.formats.names import one_line, renamed
from sortformer.formats.write import write_text

__all__ = ["format", "write"]


def format(recording: Diarization) -> str:
    """Return labels, sorted by start, end and speaker; empty if nobody speaks.

    Touching turns of one speaker are joined.

    Raises:
        InputError: when the names of two speakers differ only in white space.
    """
    named = renamed(recording, one_line, "an Audacity label")
    return "".join(
        f"{start / 1000:.3f}\t{end / 1000:.3f}\t{speaker}\n" for start, end, speaker, _ in in_milliseconds(named)
    )


def write(path: str | os.PathLike[str], recording: Diarization, *, overwrite: bool = False) -> None:
    """Write a label file atomically (see :func:`format`)."""
    write_text(path, format(recording), overwrite=overwrite)

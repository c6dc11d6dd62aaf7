"""Labels of Audacity: a line a turn, with start, end (seconds) and speaker, divided by tabs.

The standard format of Audacity's manual ("Importing and Exporting Labels"), in UTF-8. Its File > Import > Labels looks
for ``.txt``, so that files end in ``.labels.txt``. A label has no place for tabs and line breaks: names are written in
one line. Times are written in whole milliseconds.
"""

import os

from sortformer.annotation import Diarization
from sortformer.formats.milliseconds import in_milliseconds
from sortformer.formats.names import one_line, renamed
from sortformer.formats.write import write_text

__all__ = ["format", "write"]


def format(recording: Diarization) -> str:
    """Return labels, sorted by start, end and speaker; empty where nobody speaks.

    Touching turns of one speaker are joined.

    Raises:
        InputError: when two speakers have one name but for white space.
    """
    named = renamed(recording, one_line, "a label of Audacity's")
    return "".join(
        f"{start / 1000:.3f}\t{end / 1000:.3f}\t{speaker}\n" for start, end, speaker, _ in in_milliseconds(named)
    )


def write(path: str | os.PathLike[str], recording: Diarization, *, overwrite: bool = False) -> None:
    """Write a file of labels (see :func:`format`), whole or not at all."""
    write_text(path, format(recording), overwrite=overwrite)

"""Audacity labels: one line per turn, with start, end (seconds) and speaker, separated by tabs.

The standard format of Audacity's manual ("Importing and Exporting Labels"), in UTF-8. Its File > Import > Labels looks
for ``.txt``, so files end in ``.labels.txt``. A label cannot contain tabs or line breaks: white space in names becomes
spaces. Times are written in whole milliseconds.
"""

import os

from sortformer.annotation import Diarization, Turn
from sortformer.formats.milliseconds import in_milliseconds
from sortformer.formats.names import one_line, renamed
from sortformer.formats.source import Line, quoted, read_text
from sortformer.formats.write import write_text

__all__ = ["format", "parse", "read", "write"]

_FREQUENCIES = "\\"  # begins a second line of the label of a spectral selection


def parse(text: str, source: str = "labels") -> tuple[Turn, ...]:
    """Return the turns of a label track, sorted; the speaker is the text of the label. Point labels are ignored.

    Raises:
        InputError: with source and line number, when a line is not a label, or a label has no text or ends before it
            starts.
    """
    turns = list[Turn]()
    for number, row in enumerate(text.split("\n"), start=1):
        if not row.strip() or row.startswith(_FREQUENCIES):
            continue
        line = Line(source, number, row.split("\t", 2))
        if len(line.fields) < 2:
            raise line.error(f"a label needs start, end and speaker, separated by tabs, got {quoted(row)}")
        start, end, speaker = line.seconds(0, "start"), line.seconds(1, "end"), "".join(line.fields[2:])
        if end < start:
            raise line.error(f"the end, {end:g} s, is before the start, {start:g} s")
        if start == end:
            continue
        if not speaker.strip():
            raise line.error("the label has no text: write the name of the speaker")
        turns.append(Turn(start, end, one_line(speaker)))
    return tuple(sorted(turns))


def read(path: str | os.PathLike[str]) -> tuple[Turn, ...]:
    """Read a label file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


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

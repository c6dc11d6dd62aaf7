"""TextGrid, the annotations of Praat: a tier a speaker, divided into intervals from the beginning to the end.

The long text format, as Praat's manual has it ("TextGrid file formats")::

    File type = "ooTextFile"
    Object class = "TextGrid"
    xmin, xmax                              the recording, in seconds
    tiers? <exists>
    size, item [1]:                         the number of tiers, and each:
        class = "IntervalTier", name, xmin, xmax
        intervals: size, intervals [1]:     the number of intervals, and each:
            xmin, xmax, text                a turn, or a silence where the text is empty

``"`` in a text is doubled. Praat divides by lines only between values, but other readers everywhere, so that names are
written in one line. Times are written in whole milliseconds, but for the end of the recording.
"""

import os
from collections.abc import Iterator
from decimal import Decimal

from sortformer.annotation import Diarization, arrival_name
from sortformer.formats.milliseconds import in_milliseconds, last_millisecond
from sortformer.formats.names import one_line, renamed
from sortformer.formats.write import write_text

__all__ = ["format", "write"]

Interval = tuple[str, str, str]


def format(recording: Diarization) -> str:
    """Return a TextGrid: a tier a speaker, by arrival, in which each turn is an interval with the speaker's name.

    Touching turns of one speaker are joined. Where nobody speaks, the first speaker to come has an empty tier, because
    Praat wants one.

    Raises:
        InputError: when two speakers have one name but for white space.
    """
    named = renamed(recording, one_line, "a TextGrid")
    end = _number(recording.duration)
    tiers = named.speakers or (arrival_name(0),)
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {end}"]
    lines += ["tiers? <exists>", f"size = {len(tiers)}", "item []:"]
    for number, name in enumerate(tiers, start=1):
        intervals = list(_intervals(named, name))
        lines += [
            f"    item [{number}]:",
            '        class = "IntervalTier"',
            f"        name = {_quoted(name)}",
            "        xmin = 0",
            f"        xmax = {end}",
            f"        intervals: size = {len(intervals)}",
        ]
        for place, (start, stop, text) in enumerate(intervals, start=1):
            lines += [
                f"        intervals [{place}]:",
                f"            xmin = {start}",
                f"            xmax = {stop}",
                f"            text = {_quoted(text)}",
            ]
    return "\n".join(lines) + "\n"


def _intervals(recording: Diarization, speaker: str) -> Iterator[Interval]:
    """Start, end and text of each interval of a tier, without a gap: what is between turns has no text."""
    last, end = last_millisecond(recording), _number(recording.duration)
    before = "0"
    for start_ms, stop_ms, who, _ in in_milliseconds(recording):
        if who != speaker:
            continue
        start, stop = _number(start_ms / 1000), end if stop_ms == last else _number(stop_ms / 1000)
        if start != before:
            yield before, start, ""
        yield start, stop, speaker
        before = stop
    if before != end:
        yield before, end, ""


def _number(seconds: float) -> str:
    """The shortest decimal that is the same number; not all readers know exponents."""
    return f"{Decimal(repr(seconds)).normalize():f}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def write(path: str | os.PathLike[str], recording: Diarization, *, overwrite: bool = False) -> None:
    """Write a TextGrid file (see :func:`format`), whole or not at all."""
    write_text(path, format(recording), overwrite=overwrite)

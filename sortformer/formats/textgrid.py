"""TextGrid, the annotation format of Praat: one tier per speaker, divided into intervals from start to end.

The long text format of Praat's manual ("TextGrid file formats")::

    File type = "ooTextFile"
    Object class = "TextGrid"
    xmin, xmax                              the recording, in seconds
    tiers? <exists>
    size, item [1]:                         the number of tiers, and each:
        class = "IntervalTier", name, xmin, xmax
        intervals: size, intervals [1]:     the number of intervals, and each:
            xmin, xmax, text                a turn, or a silence where the text is empty

``"`` in a text is doubled. Praat allows line breaks in a text, other readers do not, so names are written in one line.
Times are written in whole milliseconds, except for the end of the recording. The short format has only the values; as
in Praat, everything but quoted text and free-standing numbers and flags is ignored when a file is read.
"""

import math
import os
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from sortformer.annotation import Diarization, Turn, last_end
from sortformer.errors import InputError
from sortformer.formats.milliseconds import in_milliseconds, last_millisecond
from sortformer.formats.names import in_unicode, one_line, renamed
from sortformer.formats.source import decoded, quoted, read_bytes
from sortformer.formats.write import write_text
from sortformer.unnamed import arrival_name

__all__ = ["format", "parse", "read", "write"]

Interval = tuple[str, str, str]

_NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
_VALUE = rf'"(?:[^"]|"")*"|(?:{_NUMBER}|<exists>|<absent>)(?!\S)'
_TOKEN = re.compile(rf'(?P<value>{_VALUE})|(?P<open>")|![^\n]*|[^\s"]+')


def parse(text: str, source: str = "TextGrid", uri: str = "audio") -> Diarization:
    """Return the recording in a TextGrid in the long or the short format: each interval with a text is a turn.

    The speaker is the name of the tier. Point tiers are ignored. The recording is as long as the TextGrid.

    Raises:
        InputError: with source and line number, when it is not a TextGrid, is cut off, an interval with a text has no
            length, runs backwards or begins before 0, or a tier with a turn has no name.
    """
    values = _Values(text, source)
    if values.next() not in ('"ooTextFile"', '"ooTextFile short"') or values.next() != '"TextGrid"':
        raise values.error('a TextGrid must begin with "ooTextFile" and "TextGrid"; is this one?')
    _, end_s = values.span()
    turns = list[Turn]()
    for _ in range(values.count() if values.next() == "<exists>" else 0):
        kind, speaker = values.text(), values.text().strip()
        values.span()
        for _ in range(values.count()):
            if kind != "IntervalTier":
                values.number()
                values.text()
                continue
            start, end = values.span()
            if not values.text().strip():
                continue
            if not 0 <= start < end:
                raise values.error(f"an interval needs 0 <= start < end in seconds, got {start:g} to {end:g}")
            if not speaker:
                raise values.error("the tier has no name, so its speaker is unknown; name it in Praat")
            turns.append(Turn(start, end, speaker))
    return Diarization(tuple(turns), max(end_s, last_end(turns)), uri)


class _Values:
    """The values of a TextGrid, read in order."""

    def __init__(self, text: str, source: str) -> None:
        self._found = (token for token in _TOKEN.finditer(text) if token.lastgroup)
        self._text, self._source, self._place = text, source, 0

    def error(self, what: str) -> InputError:
        """Return an error with the source and the line number of the last value."""
        return InputError(f"{self._source}, line {1 + self._text.count(chr(10), 0, self._place)}: {what}")

    def next(self) -> str:
        """Return the next value as it is written."""
        token = next(self._found, None)
        self._place = len(self._text) if token is None else token.start()
        if token is None or token.lastgroup == "open":
            raise self.error(
                "the TextGrid is cut off here" if token is None else "a string that begins here has no end"
            )
        return token[0]

    def text(self) -> str:
        """Return the next value, which must be a text, without its quotes."""
        if (found := self.next())[0] != '"':
            raise self.error(f"a string in quotes is needed here, got {quoted(found)}")
        return found[1:-1].replace('""', '"')

    def number(self) -> float:
        """Return the next value, which must be a finite number."""
        found = self.next()
        if found[0] in '"<' or not math.isfinite(number := float(found)):
            raise self.error(f"a number is needed here, got {quoted(found)}")
        return number

    def span(self) -> tuple[float, float]:
        """Return the next two values, which must be finite numbers: a start and an end."""
        return self.number(), self.number()

    def count(self) -> int:
        """Return the next value, which must be a count."""
        if (number := self.number()) < 0 or number % 1:
            raise self.error(f"a whole number is needed here, got {number:g}")
        return int(number)


def read(path: str | os.PathLike[str]) -> Diarization:
    """Read a TextGrid (see :func:`parse`), named after its file; Praat writes UTF-8, or UTF-16 where it has to.

    Raises:
        InputError: also when the TextGrid is binary.
    """
    content, source = read_bytes(path), os.fspath(path)
    if content.startswith(b"ooBinaryFile"):  # its floats are seldom UTF-8
        raise InputError(f"{source} is a binary TextGrid: save it as a text file in Praat")
    return parse(decoded(content, source), source, in_unicode(Path(path).stem))


def format(recording: Diarization) -> str:
    """Return a TextGrid: one tier per speaker, by arrival, in which each turn is an interval with the speaker's name.

    Touching turns of one speaker are joined. If nobody speaks, there is an empty tier for the first speaker, because
    Praat requires one.

    Raises:
        InputError: when the names of two speakers differ only in white space.
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
    """Yield start, end and text of the intervals of a tier, without gaps: those between turns have an empty text."""
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
    """Return the shortest decimal of the same value, without an exponent, which not all readers know."""
    return f"{Decimal(repr(seconds)).normalize():f}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def write(path: str | os.PathLike[str], recording: Diarization, *, overwrite: bool = False) -> None:
    """Write a TextGrid file atomically (see :func:`format`)."""
    write_text(path, format(recording), overwrite=overwrite)

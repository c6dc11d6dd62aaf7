"""Plain text for people to read: the speech time of each speaker, then the turns, or the words with their speakers."""

import os
import unicodedata
from collections.abc import Iterable

from sortformer.annotation import Diarization, window_start
from sortformer.errors import counted
from sortformer.formats.names import one_line, renamed
from sortformer.formats.passages import Said, passages
from sortformer.formats.passages import text as spoken_text
from sortformer.formats.write import write_text

__all__ = ["clock", "format", "write"]


def format(recording: Diarization, words: Iterable[Said] | None = None) -> str:
    """Return a summary and one line per turn; times as ``h:mm:ss.ss``, shares relative to the window that was read.

    They are so, too, if only regions of it were kept (``within``): the first line gives the time that they are of.

    With words in the form of ``assign_speakers``, there is one line per passage instead: the words of one speaker
    without a pause of a second. Each run of white space in a name becomes one space.

    Raises:
        InputError: when two speakers then have the same name, or an item is not a word.
    """
    speech = renamed(recording, one_line, "text").merge()
    spoken = {name: sum(turn.duration for turn in speech if turn.speaker == name) for name in speech.speakers}
    width = max(map(_width, spoken), default=0)
    count = counted(len(spoken), "speaker") if spoken else "nobody speaks"
    start = window_start(recording)
    heard = f"{clock(start)} - {clock(recording.duration)}" if start else clock(recording.duration)
    head = [f"{one_line(recording.uri)}  {heard}  {count}"]
    totals = [
        f"  {_padded(name, width)}  {clock(seconds)}  {100 * seconds / (recording.duration - start):5.1f} %"
        for name, seconds in spoken.items()
    ]
    if words is None:
        body = [f"{clock(turn.start)} - {clock(turn.end)}  {turn.speaker}" for turn in speech]
    else:
        body = [_line(passage) for passage in passages(words)]
    blank = [""] if body else []
    return "\n".join(head + totals + blank + body) + "\n"


def _line(passage: list[Said]) -> str:
    end, speaker = max(word[1] for word in passage), passage[0][3]
    name = "" if speaker is None else f"{one_line(speaker)}: "
    return f"{clock(passage[0][0])} - {clock(end)}  {name}{spoken_text(passage)}"


def clock(seconds: float) -> str:
    """Return a time as ``h:mm:ss.ss``."""
    hundredths = round(seconds * 100)
    minutes, rest = divmod(hundredths, 6000)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest // 100:02d}.{rest % 100:02d}"


def _width(name: str) -> int:
    """Return the width of a name in terminal columns; East Asian wide letters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in name)


def _padded(name: str, width: int) -> str:
    return name + " " * (width - _width(name))


def write(path: str | os.PathLike[str], recording: Diarization, *, overwrite: bool = False) -> None:
    """Write a text file atomically (see :func:`format`)."""
    write_text(path, format(recording), overwrite=overwrite)

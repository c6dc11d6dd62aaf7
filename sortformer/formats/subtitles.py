"""Subtitles from words with speakers: SubRip (srt), ``Ada: text``, and WebVTT (vtt), ``<v Ada>text``.

SubRip is defined only by its use; WebVTT is that of the W3C ("WebVTT: The Web Video Text Tracks Format", 2019). A
subtitle has the words of one speaker, and ends at a pause or, at the end of a sentence if there is one near, before it
gets too long to read.
"""

import os
import re
from collections.abc import Iterable, Iterator
from html import escape, unescape
from itertools import pairwise
from pathlib import Path
from typing import Literal

from sortformer.errors import InputError
from sortformer.formats.names import one_line
from sortformer.formats.passages import Passage, Said, passages, text
from sortformer.formats.source import quoted, read_text
from sortformer.formats.spacing import joined
from sortformer.formats.write import write_text

__all__ = ["format", "parse", "read", "write"]

_CLOCK = r"(?:(\d{1,9}):)?([0-5]?\d):([0-5]?\d)(?:[.,] ?(\d{1,3}))?"
_TIMES = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}(?!\S)")
_MEANT_AS_TIMES = re.compile(r"\s*\d[\s\d:.,]*-->")
_TIME_WITHIN = re.compile(rf"<{_CLOCK}>")  # a timestamp within a WebVTT subtitle: the start of the text after it
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|\{\\[^{}]*\}")

_IN_VOICE = {ord(mark): f"&#{ord(mark)};" for mark in "&<>"}  # FFmpeg and mpv would show &amp; and what follows it

_NUMBER = re.compile(r"\s*\d+\.?\s*$")
_FLASH_S = 0.02  # rolling automatic captions repeat a line for this time before the next one

_LONGEST_S = 7.0
_LINE = 42  # letters; a subtitle has two lines
_STOPS, _CLOSING = (*".?!…。？！",), "\"'”’»)]」』"


def format(words: Iterable[Said], kind: Literal["srt", "vtt"] = "srt") -> str:
    """Return subtitles of words in the form of ``assign_speakers``: start and end in seconds, text, speaker or None.

    Raises:
        InputError: when the kind is unknown, or an item is not such a word.
    """
    if kind not in ("srt", "vtt"):
        raise InputError(f"subtitles must be srt or vtt, not {kind!r}")
    parts = [part for each in passages(words) for part in _parts_to_read(each, _label(each) if kind == "srt" else "")]
    cues = []
    for number, cue in enumerate(sorted(parts, key=lambda part: part[0][0]), start=1):
        start = round(1000 * cue[0][0])
        end = max(start + 1, round(1000 * max(word[1] for word in cue)))
        times = f"{_clock(start)} --> {_clock(end)}"
        if kind == "srt":
            line = _label(cue) + text(cue)
            line = line.replace("-->", "->")  # SubRip has no escape for it, and readers would take the line for times
            cues.append(f"{number}\n{times.replace('.', ',')}\n{line}\n")
        else:
            voice = f"<v {one_line(cue[0][3]).translate(_IN_VOICE)}>" if cue[0][3] else ""
            cues.append(f"{times}\n{voice}{escape(text(cue), quote=False)}\n")
    return "\n".join(cues if kind == "srt" else ["WEBVTT\n", *cues])


def write(path: str | os.PathLike[str], words: Iterable[Said], *, overwrite: bool = False) -> None:
    """Write subtitles (see :func:`format`) atomically, in the format of the file's extension.

    Raises:
        InputError: when that is neither .srt nor .vtt, an item is not a word, or the file exists and ``overwrite`` is
            not set.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    write_text(path, format(words, kind), overwrite=overwrite)  # pyright: ignore[reportArgumentType]


def parse(text: str, source: str = "subtitles") -> list[tuple[float, float, str]]:
    """Return start and end in seconds, and the text in one line without markup, of each SubRip or WebVTT subtitle.

    They are sorted by time; subtitles without text are omitted. A WebVTT subtitle with timestamps in its text is split
    at them. In rolling automatic captions, a line that several subtitles repeat is returned once.

    Raises:
        InputError: with source and line number, when times are invalid or run backwards; or when there is text, but no
            subtitle.
    """
    whole, text = text, text.lstrip("\ufeff \t\n")
    first = whole.count("\n") - text.count("\n") + 1
    subtitles = sorted(_subtitles(text, source, first), key=lambda each: each[:2])
    if not subtitles and text and not text.startswith("WEBVTT"):
        raise InputError(f"{source}: it has no subtitles; is this SubRip or WebVTT?")
    flashes = sum(end - start <= _FLASH_S for start, end, _ in subtitles)
    written = [line for *_, lines in subtitles for line in lines]
    # Automatic captions do not name speakers; with names, short subtitles may be two people who say a word at once.
    named = any("<v " in line for line in written)
    rolling = any(map(_TIME_WITHIN.search, written)) or (4 * flashes > len(subtitles) and not named)
    found: list[tuple[float, float, str]] = []
    before, until = list[str](), 0.0
    for start, end, lines in subtitles:
        plain = [_plain(line) for line in lines]
        stayed = _stayed(before, plain) if rolling and start - until <= _FLASH_S else 0
        found += _parts(start, end, joined(map(_line, lines[stayed:])))
        before, until = plain, end
    return found


def _line(line: str) -> str:
    """Return a line without tags; with a dash, which begins what another person says, it keeps its space."""
    bare = _TAG.sub("", line).strip()
    return f" {bare}" if bare.startswith(("-", "–")) else bare


def _stayed(before: list[str], lines: list[str]) -> int:
    """Return how many of the first lines were the last ones of the subtitle before."""
    return next((count for count in range(len(lines), 0, -1) if before[-count:] == lines[:count]), 0)


def _subtitles(text: str, source: str, first: int) -> list[tuple[float, float, list[str]]]:
    """Return start, end and lines of each subtitle, unprocessed, without blank lines; ``first`` is a line number."""
    web = text.startswith("WEBVTT")
    found: list[tuple[float, float, list[str]]] = []
    ended, before, numbers = True, "", 0
    for number, line in enumerate(text.split("\n"), start=first):
        if times := _TIMES.match(line):
            start, end = _seconds(*times.groups()[:4]), _seconds(*times.groups()[4:])
            if end < start:
                raise InputError(f"{source}, line {number}: a subtitle needs start <= end, got {quoted(line.strip())}")
            numbers += _NUMBER.match(before) is not None
            found.append((start, end, []))
            ended = False
        elif _MEANT_AS_TIMES.match(line):
            raise InputError(
                f"{source}, line {number}: a subtitle needs times like 00:01:02.500 --> 00:01:04.000, got "
                f"{quoted(line.strip())}"
            )
        elif web and not line:
            ended = True  # in SubRip the text continues until the next times
        elif line.strip() and not ended:
            found[-1][2].append(line)
        before = line if line.strip() else before
    if not web and 2 * numbers > len(found):  # numbered: the last line of each is the number of the next, not text
        for *_, lines in found[:-1]:
            if lines and _NUMBER.match(lines[-1]):
                lines.pop()
    return found


def _parts(start: float, end: float, text: str) -> Iterator[tuple[float, float, str]]:
    """Yield the parts of a subtitle between the timestamps in its text."""
    fields = _TIME_WITHIN.split(text)  # text, the four groups of a time, text, ...
    times = [start, *(_seconds(*fields[at : at + 4]) for at in range(1, len(fields), 5)), end]
    for (before, after), said in zip(pairwise(times), fields[::5], strict=True):
        if plain := _plain(said):
            begun = min(max(start, before), end)
            yield begun, min(max(begun, after), end), plain


def _plain(text: str) -> str:
    return " ".join(unescape(_TAG.sub("", _TIME_WITHIN.sub("", text))).split())


def _seconds(hours: str | None, minutes: str, seconds: str, rest: str | None) -> float:
    return 3600 * int(hours or 0) + 60 * int(minutes) + float(f"{seconds}.{rest or 0}")


def read(path: str | os.PathLike[str]) -> list[tuple[float, float, str]]:
    """Read a subtitle file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


def _label(passage: Passage) -> str:
    return f"{one_line(passage[0][3])}: " if passage[0][3] else ""


def _parts_to_read(passage: Passage, label: str) -> Iterator[Passage]:
    """Yield the subtitles of a passage, short enough in seconds and, with what is shown of its name, in letters.

    If a sentence ends in the second half of one, it ends there, too.
    """
    letters = 2 * _LINE - min(len(label), _LINE)

    def can_be_read(part: Passage) -> bool:
        return part[-1][1] - part[0][0] <= _LONGEST_S and len(text(part)) <= letters

    while passage:
        most = next((count for count in range(1, len(passage)) if not can_be_read(passage[: count + 1])), len(passage))
        if most < len(passage):
            most = next((count for count in range(most, most // 2, -1) if _ends(passage[count - 1])), most)
        yield passage[:most]
        passage = passage[most:]


def _ends(word: Said) -> bool:
    """Return whether a sentence ends with this word."""
    return word[2].rstrip().rstrip(_CLOSING).endswith(_STOPS)


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest:03d}"

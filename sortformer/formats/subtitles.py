"""Subtitles from words and who said them: SubRip (srt), ``Ada: text``, and WebVTT (vtt), ``<v Ada>text``.

SubRip has no definition but its use; WebVTT is that of the W3C ("WebVTT: The Web Video Text Tracks Format", 2019). A
subtitle has the words of one speaker, and ends at a pause, or where it would be too long to be read.
"""

import os
import re
from collections.abc import Iterable
from html import escape, unescape
from pathlib import Path
from typing import Literal

from sortformer.errors import InputError
from sortformer.formats.passages import Passage, Said, passages, text
from sortformer.formats.source import read_text
from sortformer.formats.write import write_text

__all__ = ["format", "parse", "read", "write"]

_CLOCK = r"(?:(\d+):)?([0-5]?\d):([0-5]?\d)[.,](\d{1,3})"
_TIMES = re.compile(rf"{_CLOCK}\s*-->\s*{_CLOCK}(?!\S)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")

_LONGEST_S = 7.0
_MOST_LETTERS = 84  # two lines


def format(words: Iterable[Said], kind: Literal["srt", "vtt"] = "srt") -> str:
    """Return subtitles of words as ``assign_speakers`` gives them: start and end in seconds, text, speaker or None.

    Raises:
        InputError: when there is no such kind, or an item is no such word.
    """
    if kind not in ("srt", "vtt"):
        raise InputError(f"subtitles are srt or vtt, not {kind!r}")
    cues = []
    for number, cue in enumerate(passages(words, _can_be_read), start=1):
        speaker, spoken = " ".join((cue[0][3] or "").split()), text(cue)
        start = round(1000 * cue[0][0])
        end = max(start + 1, round(1000 * max(word[1] for word in cue)))
        times = f"{_clock(start)} --> {_clock(end)}"
        if kind == "srt":
            cues.append(f"{number}\n{times.replace('.', ',')}\n{f'{speaker}: ' if speaker else ''}{spoken}\n")
        else:
            voice = f"<v {escape(speaker, quote=False)}>" if speaker else ""
            cues.append(f"{times}\n{voice}{escape(spoken, quote=False)}\n")
    return "\n".join(cues if kind == "srt" else ["WEBVTT\n", *cues])


def write(path: str | os.PathLike[str], words: Iterable[Said], *, overwrite: bool = False) -> None:
    """Write subtitles (see :func:`format`) of the kind that the file's name ends in, whole or not at all.

    Raises:
        InputError: when it ends in neither .srt nor .vtt, an item is no word, or the file is there already.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    write_text(path, format(words, kind), overwrite=overwrite)  # pyright: ignore[reportArgumentType]


def parse(text: str, source: str = "subtitles") -> list[tuple[float, float, str]]:
    """Return start and end in seconds, and the text in one line without its markup, of each SubRip or WebVTT subtitle.

    Raises:
        InputError: with source and line number, where times are none; or when there is text, but no subtitle.
    """
    found: list[tuple[float, float, str]] = []
    open_ = False  # until a blank line, what follows the times is text
    for number, line in enumerate(text.split("\n"), start=1):
        if "-->" in line:
            times = _TIMES.match(line.strip())
            if times is None:
                raise InputError(
                    f"{source}, line {number}: a subtitle needs times like 00:01:02.500 --> 00:01:04.000, got "
                    f"{line.strip()!r}"
                )
            start, end = _seconds(*times.groups()[:4]), _seconds(*times.groups()[4:])
            found.append((start, end, ""))
            open_ = True
        elif open_ and line.strip():
            start, end, before = found[-1]
            found[-1] = start, end, f"{before} {line.strip()}".strip()
        else:
            open_ = False
    if not found and text.strip() and not text.startswith("WEBVTT"):
        raise InputError(f"{source}: no subtitle is in it; is this SubRip or WebVTT?")
    return [(start, end, unescape(_TAG.sub("", said)).strip()) for start, end, said in found]


def _seconds(hours: str | None, minutes: str, seconds: str, rest: str) -> float:
    return 3600 * int(hours or 0) + 60 * int(minutes) + float(f"{seconds}.{rest}")


def read(path: str | os.PathLike[str]) -> list[tuple[float, float, str]]:
    """Read a file of subtitles (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


def _can_be_read(cue: Passage, word: Said) -> bool:
    """Whether a subtitle with one more word is neither too long nor too wide."""
    return word[1] - cue[0][0] <= _LONGEST_S and len(text([*cue, word])) <= _MOST_LETTERS


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest:03d}"

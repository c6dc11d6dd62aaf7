"""Subtitles from words and who said them: SubRip (srt), ``Ada: text``, and WebVTT (vtt), ``<v Ada>text``.

SubRip has no definition but its use; WebVTT is that of the W3C ("WebVTT: The Web Video Text Tracks Format", 2019). A
subtitle has the words of one speaker, and ends at a pause, or where it would be too long to be read.
"""

import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Literal

from sortformer.errors import InputError
from sortformer.formats.passages import Passage, Said, passages, text
from sortformer.formats.write import write_text

__all__ = ["format", "write"]

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


def _can_be_read(cue: Passage, word: Said) -> bool:
    """Whether a subtitle with one more word is neither too long nor too wide."""
    return word[1] - cue[0][0] <= _LONGEST_S and len(text([*cue, word])) <= _MOST_LETTERS


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest:03d}"

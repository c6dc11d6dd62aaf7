"""CTM, the time-marked words of a speech recogniser, as exchanged by Kaldi, NeMo and NIST's scoring tools.

The fields: recording, channel, start, duration, word, and optionally a confidence and more, which are not read (NIST,
"CTM file format" of the SCTK; times in seconds).
"""

import os
from typing import NamedTuple

from sortformer.errors import InputError
from sortformer.formats.source import SCLITE, lines, quoted, read_text

__all__ = ["Spoken", "parse", "read"]

_SILENCES = frozenset({"<eps>", "<sil>", "!sil"})


class Spoken(NamedTuple):
    """A word with its times in seconds, and its channel, such as ``1`` or ``A``."""

    start: float
    end: float
    text: str
    channel: str


def parse(text: str, source: str = "CTM") -> dict[str, list[Spoken]]:
    """Return the words of all channels by recording id, sorted by time.

    The first of several alternatives is used; silences (``<eps>``, ``<sil>``, ``!SIL``) are omitted.

    Raises:
        InputError: with source and line number, when a line is not a word with its times; or when there is text, but
            no word.
    """
    found: dict[str, list[Spoken]] = {}
    alternative = 0  # the number of the alternative that a word belongs to; 0 outside alternatives
    for line in lines(text, source, SCLITE):
        if len(line.fields) < 5 or line.fields[0] == "SPEAKER":
            raise line.error(
                f"a CTM word needs recording, channel, start, duration and text, got {quoted(' '.join(line.fields))}"
            )
        uri, word = line.fields[0], line.fields[4]
        marks = {"<ALT_BEGIN>": 1, "<ALT>": alternative + 1, "<ALT_END>": 0}
        if word in marks:
            alternative = marks[word]
            continue
        words = found.setdefault(uri, [])
        if alternative < 2 and word.lower() not in _SILENCES:
            start = line.seconds(2, "start")
            words.append(Spoken(start, round(start + line.seconds(3, "duration"), 6), word, line.fields[1]))
    if not found and text.strip():
        raise InputError(f"{source}: it has no words; is this CTM?")
    return {uri: sorted(words, key=lambda word: word[:2]) for uri, words in found.items()}


def read(path: str | os.PathLike[str]) -> dict[str, list[Spoken]]:
    """Read a CTM file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))

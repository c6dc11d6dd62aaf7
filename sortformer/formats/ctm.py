"""CTM, the time-marked words of a speech recogniser, as exchanged by Kaldi, NeMo and NIST's scoring tools.

The fields: recording, channel, start, duration, word, and optionally a confidence and more, which are not read (NIST,
"CTM file format" of the SCTK; times in seconds).
"""

import os

from sortformer.errors import InputError
from sortformer.formats.source import SCLITE, lines, quoted, read_text

__all__ = ["parse", "read"]

_SILENCES = frozenset({"<eps>", "<sil>", "!sil"})


def parse(text: str, source: str = "CTM") -> dict[str, list[tuple[float, float, str]]]:
    """Return the words of all channels by recording id: start and end in seconds, and the word, sorted by time.

    The first of several alternatives is used; silences (``<eps>``, ``<sil>``, ``!SIL``) are omitted.

    Raises:
        InputError: with source and line number, when a line is not a word with its times; or when there is text, but
            no word.
    """
    found: dict[str, list[tuple[float, float, str]]] = {}
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
            words.append((start, round(start + line.seconds(3, "duration"), 6), word))
    if not found and text.strip():
        raise InputError(f"{source}: it has no words; is this CTM?")
    return {uri: sorted(words, key=lambda word: word[:2]) for uri, words in found.items()}


def read(path: str | os.PathLike[str]) -> dict[str, list[tuple[float, float, str]]]:
    """Read a CTM file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))

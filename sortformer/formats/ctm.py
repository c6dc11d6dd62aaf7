"""CTM, the words that a recogniser has heard: what Kaldi, NeMo and NIST's scoring tools exchange.

The fields: recording, channel, start, duration, word, and perhaps how sure that is, which is not read, nor is what
follows it (NIST, "CTM file format" of the SCTK; times in seconds).
"""

import os

from sortformer.errors import InputError
from sortformer.formats.source import lines, quoted, read_text

__all__ = ["parse", "read"]

_SILENCES = frozenset({"<eps>", "<sil>", "!sil"})
_ALTERNATIVES = {"<ALT_BEGIN>": lambda _: 1, "<ALT>": lambda number: number + 1, "<ALT_END>": lambda _: 0}
"""The number of the alternative that follows a mark; 0 where there is only one."""


def parse(text: str, source: str = "CTM") -> dict[str, list[tuple[float, float, str]]]:
    """Return the words of each recording by its id: start and end in seconds, and the word; those of all channels.

    They are in order of time. Of alternatives the first is taken; silences (``<eps>``, ``<sil>``, ``!SIL``) are left
    out.

    Raises:
        InputError: with source and line number, when a line is no word with its times; or when there is text, but no
            word.
    """
    found: dict[str, list[tuple[float, float, str]]] = {}
    alternative = 0
    for line in lines(text, source):
        if len(line.fields) < 5 or line.fields[0] == "SPEAKER":
            raise line.error(
                f"a word of CTM has recording, channel, start, duration and text, got {quoted(' '.join(line.fields))}"
            )
        uri, word = line.fields[0], line.fields[4]
        if word in _ALTERNATIVES:
            alternative = _ALTERNATIVES[word](alternative)
            continue
        words = found.setdefault(uri, [])
        if alternative < 2 and word.lower() not in _SILENCES:
            start = line.seconds(2, "start")
            words.append((start, round(start + line.seconds(3, "duration"), 6), word))
    if not found and text.strip():
        raise InputError(f"{source}: no word is in it; is this CTM?")
    return {uri: sorted(words, key=lambda word: word[:2]) for uri, words in found.items()}


def read(path: str | os.PathLike[str]) -> dict[str, list[tuple[float, float, str]]]:
    """Read a CTM file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))

"""The transcript of a recording: what a speech recogniser has written, with the times of its words."""

import json
import os
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sortformer.errors import InputError
from sortformer.formats import ctm, subtitles
from sortformer.formats.source import read_text

__all__ = ["SUFFIXES", "TORN", "parse", "read", "words_of"]

SUFFIXES = (".json", ".ctm", ".srt", ".vtt")
"""How the names of transcripts end, in the order in which one is looked for in a folder."""

TORN = b'"transcription"'
"""What whisper.cpp writes has this; where a character is of two tokens, many versions write half of it in each."""

Timed = tuple[float, float, str]


def read(path: str | os.PathLike[str]) -> dict[str, Any] | list[Any]:
    """Read a transcript (see :func:`parse`); what its name ends in says which kind it is."""
    return parse(read_text(path, TORN), os.fspath(path))


def parse(text: str, source: str, uris: Sequence[str] = ()) -> dict[str, Any] | list[Any]:
    """Return a transcript as ``assign_speakers`` takes it; which words it has is seen there.

    Args:
        text: CTM, SubRip or WebVTT where the source ends in .ctm, .srt or .vtt, or else JSON. Subtitles have no times
            of words: each is a segment.
        source: the name of its file.
        uris: what a CTM may call the recording. A CTM about one recording is taken to be about this one.

    Raises:
        InputError: when the text is not what its name says, no object or array in JSON, or a CTM of others.
    """
    suffix = Path(source).suffix.lower()
    if suffix in (".srt", ".vtt"):
        return list(subtitles.parse(text, source))
    if suffix == ".ctm":
        return list(words_of(ctm.parse(text, source), source, uris))
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{source}: not JSON ({error}); is this a transcript, as Whisper, WhisperX or OpenAI write it? Others end "
            f"in {', '.join(SUFFIXES[1:])}"
        ) from error
    if not isinstance(content, dict | list):
        raise InputError(f"{source}: no transcript, but {reprlib.repr(content)}")
    return content


def words_of(
    found: Mapping[str, list[Timed]], source: str, uris: Sequence[str], *, of_several: bool = False
) -> list[Timed]:
    """Return the words of one recording of a CTM; arguments and errors as of :func:`parse`.

    Where the CTM is ``of_several`` recordings, it has to name this one.
    """
    if len(found) < 2 and not of_several:
        return [word for words in found.values() for word in words]
    for uri in uris:
        if uri in found:
            return found[uri]
    raise InputError(
        f"{source} has no word of {' or '.join(map(repr, uris))}, only of {reprlib.repr(list(found))}: "
        "rename it there, or leave the recording out"
    )

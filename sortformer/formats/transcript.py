"""Transcripts: the output of a speech recogniser, with the times of its words."""

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
"""The extensions of transcripts, in the order in which they are looked for in a folder."""

TORN = b'"transcription"'
"""Marks the JSON of whisper.cpp, many versions of which split a character's bytes between two tokens."""


def read(path: str | os.PathLike[str]) -> dict[str, Any] | list[Any]:
    """Read a transcript (see :func:`parse`) in the format of its extension."""
    return parse(read_text(path, TORN), os.fspath(path))


def parse(text: str, source: str, uris: Sequence[str] = ()) -> dict[str, Any] | list[Any]:
    """Return a transcript in a form that ``assign_speakers`` accepts; its words are extracted there.

    Args:
        text: CTM, SubRip or WebVTT if the source ends in .ctm, .srt or .vtt, or else JSON. Subtitles have no times of
            words: each is a segment.
        source: the name of its file.
        uris: names that a CTM may have for the recording. A CTM about one recording is taken to be about this one.

    Raises:
        InputError: when the text is not in the format of its extension, JSON is not an object or array, or a CTM is
            about other recordings.
    """
    suffix = Path(source).suffix.lower()
    if suffix in (".srt", ".vtt"):
        return subtitles.parse(text, source)
    if suffix == ".ctm":
        return words_of(ctm.parse(text, source), source, uris)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{source}: not JSON ({error}); is this a transcript of Whisper, WhisperX or OpenAI? Other formats end "
            f"in {', '.join(SUFFIXES[1:])}"
        ) from error
    if not isinstance(content, dict | list):
        raise InputError(f"{source}: not a transcript, but {reprlib.repr(content)}")
    return content


def words_of(
    found: Mapping[str, list[ctm.Spoken]], source: str, uris: Sequence[str], *, of_several: bool = False
) -> list[ctm.Spoken]:
    """Return the words of one recording in a CTM; arguments and errors are those of :func:`parse`.

    If the CTM is for a set of recordings (``of_several``), it must name this one.
    """
    if len(found) < 2 and not of_several:
        return [word for words in found.values() for word in words]
    for uri in uris:
        if uri in found:
            return found[uri]
    raise InputError(
        f"{source} has no words of {' or '.join(map(repr, uris))}, only of {reprlib.repr(list(found))}: "
        "rename it there, or leave the recording out"
    )

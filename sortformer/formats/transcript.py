"""The transcript of a recording: what a speech recogniser has written, with the times of its words."""

import json
import os
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sortformer.errors import InputError
from sortformer.formats import ctm, subtitles
from sortformer.formats.source import read_text

__all__ = ["SUFFIXES", "read"]

SUFFIXES = (".json", ".ctm", ".srt", ".vtt")
"""How the names of transcripts end, in the order in which one is looked for in a folder."""


def read(
    path: str | os.PathLike[str], uris: Iterable[str] = (), *, of_several: bool = False
) -> dict[str, Any] | list[Any]:
    """Return a transcript as ``assign_speakers`` takes it; which words it has is seen there.

    Args:
        path: a file that ends in .ctm, .srt or .vtt, or else JSON. Subtitles have no times of words: each is a segment.
        uris: what a CTM may call the recording. A CTM about one recording is taken to be about this one.
        of_several: whether a CTM is that of several recordings, so that it has to name this one.

    Raises:
        InputError: when the file is missing, is not what its name says, no object or array in JSON, or a CTM of others.
    """
    suffix = Path(path).suffix.lower()
    if suffix in (".srt", ".vtt"):
        return list(subtitles.read(path))
    if suffix == ".ctm":
        found = ctm.read(path)
        if len(found) < 2 and not of_several:
            return [word for words in found.values() for word in words]
        for uri in uris:
            if uri in found:
                return list(found[uri])
        raise InputError(f"{path} has no word of {' or '.join(map(repr, uris))}, only of {reprlib.repr(list(found))}")
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not JSON ({error}); is this a transcript, as Whisper, WhisperX or OpenAI write it? Others end in "
            f"{', '.join(SUFFIXES[1:])}"
        ) from error
    if not isinstance(content, dict | list):
        raise InputError(f"{path}: no transcript, but {reprlib.repr(content)}")
    return content

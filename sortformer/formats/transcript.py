"""The transcript of a recording, in JSON: what a speech recogniser has written, with the times of its words."""

import json
import os
import reprlib
from typing import Any

from sortformer.errors import InputError
from sortformer.formats.source import read_text

__all__ = ["read"]


def read(path: str | os.PathLike[str]) -> dict[str, Any] | list[Any]:
    """Return a transcript as ``assign_speakers`` takes it; which words it has is seen there.

    Raises:
        InputError: when the file is missing, or neither an object nor an array in JSON.
    """
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not JSON ({error}); is this a transcript, as Whisper, WhisperX or OpenAI write it?"
        ) from error
    if not isinstance(found, dict | list):
        raise InputError(f"{path}: no transcript, but {reprlib.repr(found)}")
    return found

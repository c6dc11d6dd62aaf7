"""Refusals of requests that are too many or too large, and of values that a client may not send."""

from collections.abc import Iterable
from typing import TypeVar

from fastapi import HTTPException

from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["LONGEST_CLIP_S", "STOPPING", "check_clip", "given_once", "later", "too_large"]

LONGEST_CLIP_S = 60
"""Longest enrolment clip in seconds: other clips wait while it is processed."""
STOPPING = "the server is stopping: try again later"
_RETRY_S = 10

Value = TypeVar("Value")


def later(sentence: str) -> HTTPException:
    """Return a 503 that says when to try again."""
    return HTTPException(503, sentence, {"Retry-After": str(_RETRY_S)})


def too_large(most_bytes: int) -> HTTPException:
    """Return a 413 that says how large an upload may be."""
    return HTTPException(413, f"the upload exceeds the limit of {most_bytes >> 20} MiB")


def check_clip(name: str, samples: int) -> None:
    """Refuse an enrolment clip of so many samples at 16 kHz if it is too long.

    Raises:
        InputError: if it is longer than ``LONGEST_CLIP_S``.
    """
    if samples > LONGEST_CLIP_S * SAMPLE_RATE:
        raise InputError(f"the clip of {name!r} is longer than {LONGEST_CLIP_S} s: a few seconds are enough")


def given_once(given: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return the values by name.

    Raises:
        InputError: when a name is given twice, which is ambiguous.
    """
    found: dict[str, Value] = {}
    for name, value in given:
        if name in found:
            raise InputError(f"{name!r} is given more than once: send it once")
        found[name] = value
    return found

"""Checks of the options and enrolment clips that clients send."""

from collections.abc import Iterable
from typing import TypeVar

from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["LONGEST_CLIP_S", "check_clip", "given_once"]

LONGEST_CLIP_S = 60
"""Longest enrolment clip in seconds: other clips wait while it is processed."""

Value = TypeVar("Value")


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

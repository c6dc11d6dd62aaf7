"""Options as a client sends them, and clips of voices."""

from collections.abc import Iterable
from typing import TypeVar

from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["LONGEST_CLIP_S", "check_clip", "given_once"]

LONGEST_CLIP_S = 60
"""Of a voice: whoever sends more lets the others wait."""

Value = TypeVar("Value")


def check_clip(name: str, samples: int) -> None:
    """Refuse the clip of a voice, at 16 kHz, that others would have to wait for.

    Raises:
        InputError: if it is one.
    """
    if samples > LONGEST_CLIP_S * SAMPLE_RATE:
        raise InputError(f"the clip of {name!r} is longer than {LONGEST_CLIP_S} s: a few are enough")


def given_once(given: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return what is given by name.

    Raises:
        InputError: when a name is given twice: nobody knows which of them is meant.
    """
    found: dict[str, Value] = {}
    for name, value in given:
        if name in found:
            raise InputError(f"{name!r} is given more than once: send it once")
        found[name] = value
    return found

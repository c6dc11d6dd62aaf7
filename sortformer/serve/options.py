"""Options as a client sends them."""

from collections.abc import Iterable
from typing import TypeVar

from sortformer.errors import InputError

__all__ = ["given_once"]

Value = TypeVar("Value")


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

"""Validation of the values of configs and calls."""

import dataclasses
import math
import numbers
import operator
import reprlib
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from sortformer.errors import ConfigError, InputError

__all__ = [
    "LARGEST_SIZE",
    "alternatives",
    "as_annotated",
    "by_recording",
    "check_type",
    "factors",
    "require",
    "switch",
    "whole",
]

LARGEST_SIZE = 2**20
"""Far above any trained model: larger sizes are refused before memory is allocated for them."""


def require(condition: bool, message: str) -> None:
    """Refuse a config whose ``condition`` does not hold.

    Raises:
        ConfigError: with the ``message``.
    """
    if not condition:
        raise ConfigError(message)


def as_annotated(config: Any) -> None:
    """Refuse a config, as created in Python, with a value of none of its field's types, or not in its ``Literal``.

    Raises:
        ConfigError: naming the field.
    """
    for name, hint in _hints(type(config)).items():
        check_type(name, hint, getattr(config, name))


_hints = cache(typing.get_type_hints)


def check_type(name: str, hint: Any, value: Any) -> None:
    """Refuse a value of another type than an annotation, or not listed in its ``Literal``.

    Raises:
        ConfigError: naming the field.
    """
    kinds, optional = alternatives(hint)
    kind = kinds[0]
    if value is None and optional:
        return
    if typing.get_origin(kind) is tuple:
        require(isinstance(value, tuple), f"{name} must be a tuple, got {value!r}")
        for item in typing.cast(tuple, value):
            check_type(name, typing.get_args(kind)[0], item)
    elif typing.get_origin(kind) is typing.Literal:
        known = typing.get_args(kind)
        known_type = any(value == each and type(value) is type(each) for each in known)
        require(known_type, f"{name} must be one of {', '.join(map(str, known))}, got {value!r}")
    elif kind is int:
        whole_number = hasattr(value, "__index__") and not isinstance(value, bool)
        require(whole_number, f"{name} must be a whole number, got {value!r}")
    elif kind is float:
        require(_is_number(value), f"{name} must be a number, got {reprlib.repr(value)}")
    elif kind in (bool, str):
        require(isinstance(value, kind), f"{name} must be {kind.__name__}, got {value!r}")
    elif dataclasses.is_dataclass(kind):
        names = " or ".join(each.__name__ for each in kinds)
        require(isinstance(value, tuple(kinds)), f"{name} must be of type {names}, got {value!r}")


def _is_number(value: Any) -> bool:
    """Return whether a float can hold a value, and it is not NaN, with which all comparisons are false."""
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:  # an integer of 400 digits
        return False


def alternatives(hint: Any) -> tuple[list[Any], bool]:
    """Return the types that the annotation of a field allows, and whether it also allows None."""
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    kinds = typing.get_args(hint) if union else (hint,)
    return [kind for kind in kinds if kind is not type(None)], type(None) in kinds


def factors(owner: str, **given: Sequence[float]) -> None:
    """Refuse factors, given by name, such as speeds, that are none, or not all positive and finite.

    Raises:
        ConfigError: naming them and their ``owner``.
    """
    for name, each in given.items():
        listed = isinstance(each, Sequence | np.ndarray) and len(each) > 0
        positive = listed and all(isinstance(factor, numbers.Real) and 0 < factor < math.inf for factor in each)
        require(positive, f"{name} of {owner} must be one or more positive numbers, got {each!r}")


def by_recording(name: str, value: Any) -> None:
    """Refuse what is not a mapping by the ids of recordings, such as the turns of one.

    Raises:
        InputError: naming the type.
    """
    if not isinstance(value, Mapping):
        raise InputError(
            f'{name} must be a mapping by the ids of recordings, {{"meeting": ...}}, got {type(value).__name__}'
        )


def switch(name: str, value: Any) -> bool:
    """Return a caller's True or False, including numpy's, as a bool.

    Raises:
        InputError: when it is something else: any non-empty string, even "no", would count as true.
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def whole(name: str, value: Any) -> int | None:
    """Return a caller's whole number of 1 or more, including numpy's, as an int; None stays None.

    Raises:
        InputError: when it is something else, such as 2.0, "2" or True.
    """
    if value is None:
        return None
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise InputError(f"{name} must be a whole number, 1 or more, got {value!r}")
    return number

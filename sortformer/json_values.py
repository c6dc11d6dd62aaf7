"""Validated reading of JSON from outside: objects, numbers, text and paths.

``what`` names a value in the error; ``where`` is the file and line; ``kind`` is what the file should be.
"""

import json
import os
import reprlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sortformer.errors import InputError

__all__ = ["json_lines", "json_object", "json_value", "number_of", "path_of", "text_of", "whole_number_of"]

Value = TypeVar("Value")


def json_value(content: str | bytes, where: str | Path, kind: str) -> Any:
    """Return the value of a JSON document; an InputError if it is invalid."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        what_to_do = "write / or \\\\ in paths" if "escape" in str(error) else f"is this {kind}?"
        raise InputError(f"{where}: not JSON ({error}); {what_to_do}") from error


def json_object(content: str | bytes, where: str | Path, kind: str) -> dict[str, Any]:
    """Return the object of a JSON document; an InputError if it is something else."""
    found = json_value(content, where, kind)
    if not isinstance(found, dict):
        raise InputError(f"{where}: not a JSON object, but {reprlib.repr(found)}; is this {kind}?")
    return found


def json_lines(text: str, source: str | Path, kind: str, read: Callable[[dict[str, Any]], Value]) -> list[Value]:
    """Return ``read`` of the object on each line; an InputError, naming the line, if it is none or ``read`` raises."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{source}, line {number}"
            fields = json_object(line, where, kind)
            try:
                found.append(read(fields))
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
    return found


def number_of(value: Any, what: str) -> float:
    """Return a finite number; an InputError otherwise, also for NaN and integers too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise InputError(f"{what} must be a number, got {reprlib.repr(value)}")
    return float(value)


def whole_number_of(value: Any, what: str) -> int:
    """Return an integer; an InputError otherwise, also for 2.0."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{what} must be a whole number, got {reprlib.repr(value)}")
    return value


def text_of(value: Any, what: str) -> str:
    """Return text; an InputError otherwise, also for lone surrogates, which JSON can escape but no file can hold."""
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InputError(f"{what} must be text, got {reprlib.repr(value)}")
    return value


def path_of(value: Any, what: str) -> Path:
    """Return a path; an InputError if it is not text, or the system cannot encode it or it has a null byte."""
    try:
        possible = isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise InputError(f"{what} must be a path, got {reprlib.repr(value)}")
    return Path(value)

"""Settings given beside a recipe's file, as on the command line, in place of its own."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from sortformer.errors import InputError

__all__ = ["overridden"]


def overridden(values: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return the values of a TOML file with ``settings`` in place of its own; of equal ones the last counts.

    A setting is a line of TOML, such as ``loss.sort_weight=1``; a value that is not TOML is a string, as shells remove
    quotes. Tables are merged, anything else is replaced.

    Raises:
        InputError: if a setting is not of the form KEY=VALUE.
    """
    result = dict(values)
    for setting in settings:
        result = _merged(result, _parsed(setting))
    return result


def _parsed(setting: str) -> dict[str, Any]:
    key, equals, value = setting.partition("=")
    for line in (setting, f"{key}={json.dumps(value.strip(), ensure_ascii=False)}"):
        try:
            if equals and (found := tomllib.loads(line)):
                return found
        except (ValueError, RecursionError):
            continue
    raise InputError(f"a setting needs KEY=VALUE, such as loss.sort_weight=1, got {setting!r}")


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(old)
    for name, value in new.items():
        before = result.get(name)
        result[name] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result

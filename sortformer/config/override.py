"""Settings given beside a recipe's file, as on the command line, in place of its own."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from sortformer.errors import ConfigError, InputError, counted

__all__ = ["overridden"]


def overridden(values: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return the values of a TOML file with ``settings`` in place of its own; of equal ones the last counts.

    A setting is a line of TOML, such as ``loss.sort_weight=1``; a value that is not TOML is a string, as shells remove
    quotes. Tables are merged, and so are the items of a list that a setting names by number, as
    ``stages.0.batch_size=4`` does; anything else is replaced.

    Raises:
        InputError: if a setting is not of the form KEY=VALUE.
        ConfigError: if a list has no such item.
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


def _merged(old: Any, new: Any, where: str = "") -> Any:
    """Return a value in place of an old one, which keeps what a new table does not mention."""
    if not isinstance(old, dict | list) or not isinstance(new, dict):
        return new
    known = old if isinstance(old, dict) else {str(number): item for number, item in enumerate(old)}
    for name in new:
        if isinstance(old, list) and name not in known:
            number = counted(len(old), "item")
            raise ConfigError(f"{where} has no {name!r}: it is a list of {number}, numbered from 0, as in {where}.0")
    inside = f"{where}." if where else ""
    merged = known | {name: _merged(known.get(name), value, f"{inside}{name}") for name, value in new.items()}
    return merged if isinstance(old, dict) else list(merged.values())

"""Strict conversion between configs and plain dictionaries (JSON, TOML)."""

import dataclasses
import difflib
import numbers
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from sortformer.config.checks import alternatives, check_type
from sortformer.errors import ConfigError

__all__ = ["differences", "from_dict", "plain", "to_dict"]

Config = TypeVar("Config")


def from_dict(kind: type[Config], values: Mapping[str, Any], where: str = "") -> Config:
    """Build a config dataclass from a mapping; nested mappings fill nested configs, lists fill tuples.

    Where a field admits several configs, the mapping's ``kind`` selects one; a bare name selects it with its defaults.

    Raises:
        ConfigError: on an unknown key (the nearest known one is named), a missing key or an invalid value.
    """
    place = f" in {where}" if where else ""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where or kind.__name__} must be a table of keys and values, got {values!r}")
    hints = typing.get_type_hints(kind)
    members = dataclasses.fields(kind)  # pyright: ignore[reportArgumentType]
    fields = {member.name for member in members}
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; known keys: {', '.join(sorted(fields))}"
            raise ConfigError(f"unknown key '{key}'{place} of {kind.__name__}{hint}")
        arguments[key] = _convert(hints[key], value, f"{where}.{key}" if where else key)
    for member in members:
        optional = member.default is not dataclasses.MISSING or member.default_factory is not dataclasses.MISSING
        if not optional and member.name not in arguments:
            raise ConfigError(f"the key '{member.name}'{place} of {kind.__name__} is missing")
    return kind(**arguments)


def _convert(hint: Any, value: Any, where: str) -> Any:
    kinds, optional = alternatives(hint)
    if value is None and optional:
        return None
    if len(kinds) > 1:
        return _convert_tagged(kinds, value, where)
    hint = kinds[0]
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, where)  # pyright: ignore[reportArgumentType]
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]
        if not isinstance(value, list | tuple):
            tables = isinstance(value, Mapping) and dataclasses.is_dataclass(item)
            how = f"; in TOML, [[{where}]] begins each of its tables" if tables else ""
            raise ConfigError(f"{where} must be a list, got {value!r}{how}")
        return tuple(_convert(item, element, where) for element in value)
    check_type(where, hint, value)
    return float(value) if hint is float and isinstance(value, int) else value


def _convert_tagged(options: list[Any], value: Any, where: str) -> Any:
    """Build the one of several configs whose literal ``kind`` is that of the value."""
    kinds = {typing.get_args(typing.get_type_hints(option)["kind"])[0]: option for option in options}
    kind = value.get("kind") if isinstance(value, Mapping) else value
    if not isinstance(kind, str) or kind not in kinds:
        raise ConfigError(f"{where} must be one of {', '.join(kinds)}, or a table of such a kind, got {value!r}")
    return from_dict(kinds[kind], value if isinstance(value, Mapping) else {}, where)


def to_dict(config: Any) -> dict[str, Any]:
    """Return a config as plain dictionaries, lists and scalars, the inverse of ``from_dict``."""
    return plain(dataclasses.asdict(config))


def plain(value: Any) -> Any:
    """Return a value, possibly of dictionaries and lists, with tuples as lists and numbers as Python's own."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, numbers.Real) and not isinstance(value, bool):  # including numpy's, which JSON cannot encode
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    return value


def differences(one: Any, other: Any) -> list[tuple[str, Any, Any]]:
    """Return the settings in which two configs (or their ``to_dict``) differ, with both values.

    Settings are identified by dotted names; the value of a setting that a config lacks is None.
    """
    ours, theirs = (_dotted(config if isinstance(config, Mapping) else to_dict(config)) for config in (one, other))
    return [(name, ours.get(name), theirs.get(name)) for name in ours | theirs if ours.get(name) != theirs.get(name)]


def _dotted(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings of a config, including nested ones, by dotted name."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found

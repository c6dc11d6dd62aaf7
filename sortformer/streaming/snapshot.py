"""Serialisation of sessions, so that a stream can move to another process."""

import dataclasses
import hashlib
import io
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch

from sortformer.errors import InputError

__all__ = ["from_bytes", "plain", "rebuilt", "to_bytes"]

_FORMAT, _ANY_FORMAT = b"sortformer-session/15\n", rb"sortformer-session/\d+\n"
_HEAD = len(_FORMAT) + hashlib.sha256().digest_size

Value = TypeVar("Value")


def to_bytes(values: Mapping[str, Any]) -> bytes:
    """Return plain values (see :func:`plain`) as bytes that can be read back without running code.

    The format and a SHA-256 precede torch's file, which by itself would not detect a changed number.
    """
    buffer = io.BytesIO()
    torch.save(dict(values), buffer)
    content = buffer.getvalue()
    return _FORMAT + hashlib.sha256(content).digest() + content


def from_bytes(data: bytes) -> dict[str, Any]:
    """Return the values of :func:`to_bytes`.

    Raises:
        InputError: if the bytes are damaged, from another version, or not a snapshot of a session.
    """
    data, expected = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"", _FORMAT.decode().strip()
    if not data.startswith(_FORMAT):
        if re.match(_ANY_FORMAT, data):
            raise InputError(
                f"this snapshot is from another version of the toolkit (it does not begin with '{expected}'): "
                "restore it with that version"
            )
        raise InputError(f"these bytes are not a snapshot of a session (they do not begin with '{expected}')")
    content = data[_HEAD:]
    if hashlib.sha256(content).digest() != data[len(_FORMAT) : _HEAD]:
        raise InputError("the snapshot is damaged: take another one")
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def plain(value: Any) -> Any:
    """Return a state as dictionaries, tuples, tensors and Python's scalars; arrays become tensors."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, np.generic):  # from numpy's integers in a config; reading them back would run code
        return value.item()
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def rebuilt(like: Value, values: Any, device: torch.device | None = None) -> Value:
    """Return the state from the values of :func:`plain`, with tensors on a device; ``like`` gives the structure."""
    if isinstance(like, torch.Tensor):
        return values.to(device)
    if isinstance(like, np.ndarray):
        return values.numpy()
    if isinstance(like, tuple):
        grown = (*like, *like[-1:] * (len(values) - len(like)))  # tuples that grow, such as the levels of a tree
        return tuple(rebuilt(part, value, device) for part, value in zip(grown, values, strict=True))  # pyright: ignore
    if dataclasses.is_dataclass(like):
        names = [field.name for field in dataclasses.fields(like)]
        return type(like)(*(rebuilt(getattr(like, name), values[name], device) for name in names))  # pyright: ignore
    return values

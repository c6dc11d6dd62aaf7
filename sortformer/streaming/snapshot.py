"""A session as bytes, so that a stream can move to another process."""

import dataclasses
import io
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch

from sortformer.errors import InputError

__all__ = ["from_bytes", "plain", "rebuilt", "to_bytes"]

_FORMAT = "sortformer-session/2"

Value = TypeVar("Value")


def to_bytes(values: Mapping[str, Any]) -> bytes:
    """Return plain values (see :func:`plain`) as bytes that can be read back without running code."""
    buffer = io.BytesIO()
    torch.save({"format": _FORMAT, **values}, buffer)
    return buffer.getvalue()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Return the values of :func:`to_bytes`.

    Raises:
        InputError: if the bytes are damaged or no snapshot of a session.
    """
    try:
        values = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise InputError("the snapshot is damaged, or no snapshot of a session at all: take another one") from error
    if not isinstance(values, dict) or values.pop("format", None) != _FORMAT:
        raise InputError(f"these bytes are no snapshot of a session (their format is not '{_FORMAT}')")
    return values


def plain(value: Any) -> Any:
    """Return a state as dictionaries, tuples, tensors and scalars; arrays become tensors."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def rebuilt(like: Value, values: Any, device: torch.device | None = None) -> Value:
    """Return the state that :func:`plain` took apart, with its tensors on a device; ``like`` has its structure."""
    if isinstance(like, torch.Tensor):
        return values.to(device)
    if isinstance(like, np.ndarray):
        return values.numpy()
    if isinstance(like, tuple):
        return tuple(rebuilt(part, value, device) for part, value in zip(like, values, strict=True))  # pyright: ignore
    if dataclasses.is_dataclass(like):
        names = [field.name for field in dataclasses.fields(like)]
        return type(like)(*(rebuilt(getattr(like, name), values[name], device) for name in names))  # pyright: ignore
    return values

"""Batching of stream states: nested dataclasses and tuples of tensors (B, ...), and None."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

__all__ = ["row", "shapes", "side_by_side"]

State = TypeVar("State")


def side_by_side(states: Sequence[State]) -> State:
    """Concatenate states of the same ``shapes`` along their rows."""
    return _zipped(torch.cat, states)


def row(state: State, index: int) -> State:
    """Return a copy of the state of one row, which does not keep the memory of the others."""
    return _zipped(lambda tensors: tensors[0][index : index + 1].clone(), [state])


def shapes(state: Any) -> tuple[torch.Size, ...]:
    """Return the shape of each tensor, without the rows."""
    found: list[torch.Size] = []

    def look(tensors: list[Tensor]) -> Tensor:
        found.append(tensors[0].shape[1:])
        return tensors[0]

    _zipped(look, [state])
    return tuple(found)


def _zipped(function: Callable[[list[Tensor]], Tensor], states: Sequence[Any]) -> Any:
    """Apply a function to the corresponding tensors of states of the same structure."""
    first = states[0]
    if isinstance(first, Tensor):
        return function(list(states))
    if isinstance(first, tuple):
        return tuple(_zipped(function, parts) for parts in zip(*states, strict=True))
    if is_dataclass(first) and not isinstance(first, type):
        members = [field.name for field in fields(first)]
        return type(first)(*(_zipped(function, [getattr(state, name) for state in states]) for name in members))
    if first is None:
        return None
    raise TypeError(f"a state must consist of tensors, got {type(first).__name__}")

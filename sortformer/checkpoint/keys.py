"""Strict renaming of weights: each tensor of a foreign checkpoint is used or dropped by name, and none is missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from sortformer.errors import InputError

__all__ = ["KeyTable", "check_weights", "of_blocks"]


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The names of our model's parts in a foreign format.

    Attributes:
        parts: their name of a module or parameter -> ours; the names inside a module are the same.
        dropped: name of a tensor in the checkpoint that our model does not need -> why.
        pointwise: endings of their names of parts with convolution kernels (C, D, 1) where ours are matrices (C, D).
    """

    parts: Mapping[str, str]
    dropped: Mapping[str, str]
    pointwise: tuple[str, ...] = ()

    def to_ours(self, path: Path, weights: Mapping[str, Tensor], needed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Rename the weights of the file ``path`` to ours and check that they match ``needed`` exactly.

        Raises:
            InputError: if a name is unknown or missing, a shape differs, or a weight has integers instead of floats; it
                has the file's names.
        """
        used = {name: tensor for name, tensor in weights.items() if name not in self.dropped}
        parts = {name: part for name in used if (part := _longest_part(name, self.parts))}
        check_weights(path, used, self.to_theirs(needed))
        renamed: dict[str, Tensor] = {}
        for name, part in parts.items():
            pointwise = part.endswith(self.pointwise) and used[name].ndim == 3
            renamed[self.parts[part] + name.removeprefix(part)] = used[name][..., 0] if pointwise else used[name]
        return renamed

    def to_theirs(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Rename our weights to theirs; the caller has to add what ``to_ours`` drops.

        Raises:
            KeyError: if the format has no name for one.
        """
        back = {ours: theirs for theirs, ours in self.parts.items()}
        renamed: dict[str, Tensor] = {}
        for name, tensor in weights.items():
            part = _longest_part(name, back)
            if part is None:
                raise KeyError(name)
            theirs = back[part]
            if theirs.endswith(self.pointwise) and tensor.ndim == 2:
                tensor = tensor[..., None]
            renamed[theirs + name.removeprefix(part)] = tensor
        return renamed


def of_blocks(count: int, theirs: str, ours: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the parts of ``count`` blocks: ``theirs`` and ``ours``, the number, and one of ``names``."""
    return {
        f"{theirs}.{block}.{name}": f"{ours}.{block}.{own}" for block in range(count) for name, own in names.items()
    }


def _longest_part(name: str, parts: Mapping[str, str]) -> str | None:
    """Return the longest dotted prefix of ``name``, or all of it, that is one of ``parts``."""
    while name not in parts:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    return name


def check_weights(path: Path, found: Mapping[str, Tensor], needed: Mapping[str, Tensor]) -> None:
    """Check that the weights of a file are exactly those that its config needs.

    Raises:
        InputError: if one is missing, unknown, of another shape, or of integers instead of floats; it names the first.
    """
    missing, extra = sorted(needed.keys() - found.keys()), sorted(found.keys() - needed.keys())
    both = sorted(needed.keys() & found.keys())
    wrong = [name for name in both if needed[name].shape != found[name].shape]
    whole = [name for name in both if needed[name].is_floating_point() and not found[name].is_floating_point()]
    for names, fault in (
        (missing, "lack"),
        (extra, "contain the unknown"),
        (wrong, "have a different shape for"),
        (whole, "have integers for"),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise InputError(f"the weights {path} do not match their config: they {fault} '{names[0]}'{more}")

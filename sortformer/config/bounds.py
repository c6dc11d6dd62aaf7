"""Numbers in configs whose bounds are beside their defaults: the sizes of attention cores and of memories."""

from dataclasses import field, fields
from typing import Any, TypeVar

from sortformer.config.checks import LARGEST_SIZE, as_annotated, require

__all__ = ["Bounded", "bounded", "size"]

Number = TypeVar("Number", int, float)


class Bounded:
    """Base of such configs, which refuses a value of another type than its field's, and a number out of bounds.

    A config with further checks calls ``Bounded.__post_init__(self)``: ``super()`` fails in a dataclass with slots.

    Raises:
        ConfigError: naming the field and, out of bounds, its owner: a ``part`` of a model, and its ``kind``.
    """

    __slots__ = ()
    part = "attention core"
    kind: Any

    def __post_init__(self) -> None:
        as_annotated(self)
        for each in fields(self):  # pyright: ignore[reportArgumentType] (of its dataclasses)
            if "bounds" in each.metadata:
                (least, most), value = each.metadata["bounds"], getattr(self, each.name)
                owner = f"{each.name} of the {self.part} '{self.kind}'"
                require(least <= value <= most, f"{owner} must be >= {least} and <= {most}, got {value}")


def bounded(default: Number, least: Number, most: Number) -> Number:
    """Return a field of a :class:`Bounded` dataclass with its default and its bounds."""
    return field(default=default, metadata={"bounds": (least, most)})


def size(default: int, least: int = 1, most: int = LARGEST_SIZE) -> int:
    """Return a field for a size, as :func:`bounded` does."""
    return bounded(default, least, most)

"""Numbers in configs whose bounds are beside their defaults: the sizes of attention cores and of memories."""

from dataclasses import field, fields
from typing import Any, TypeVar

from sortformer.config.checks import LARGEST_SIZE, check_type, require

__all__ = ["Bounded", "bounded", "size"]

Number = TypeVar("Number", int, float)


class Bounded:
    """Base of such configs, which refuses a number out of bounds.

    Raises:
        ConfigError: naming the number and its owner: a ``part`` of a model, and its ``kind``, such as "local".
    """

    __slots__ = ()
    part = "attention core"
    kind: Any

    def __post_init__(self) -> None:
        for each in fields(self):  # pyright: ignore[reportArgumentType] (of its dataclasses)
            if "bounds" in each.metadata:
                (least, most), value = each.metadata["bounds"], getattr(self, each.name)
                check_type(each.name, type(each.default), value)
                owner = f"{each.name} of the {self.part} '{self.kind}'"
                require(least <= value <= most, f"{owner} must be >= {least} and <= {most}, got {value}")


def bounded(default: Number, least: Number, most: Number) -> Number:
    """Return a field of a :class:`Bounded` dataclass with its default and its bounds."""
    return field(default=default, metadata={"bounds": (least, most)})


def size(default: int, least: int = 1, most: int = LARGEST_SIZE) -> int:
    """Return a field for a size, as :func:`bounded` does."""
    return bounded(default, least, most)

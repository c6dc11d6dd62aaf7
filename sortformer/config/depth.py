"""How a stack applies its layers: one config per way, distinguished by ``kind``."""

from dataclasses import dataclass
from typing import Literal

from sortformer.config.attention import AttentionConfig
from sortformer.config.checks import as_annotated, require
from sortformer.config.memories import NoMemory

__all__ = ["Depth", "ReversibleDepth", "StackedDepth", "UniversalDepth", "check_depth"]

_MOVING = ("routing", "combiner_routing")


@dataclass(frozen=True, slots=True)
class StackedDepth:
    """One layer after the other, each with weights of its own."""

    kind: Literal["stacked"] = "stacked"


@dataclass(frozen=True, slots=True)
class ReversibleDepth:
    """Layers whose inputs are recomputed from their outputs, so that training stores only the last outputs."""

    kind: Literal["reversible"] = "reversible"


@dataclass(frozen=True, slots=True)
class UniversalDepth:
    """One layer, applied ``layers`` times, with an encoding of the step number."""

    kind: Literal["universal"] = "universal"
    halting: bool = False
    """Whether the number of steps, at most ``layers``, is adaptive for each frame."""
    halt_at: float = 0.99
    """A frame halts when the sum of its halting probabilities reaches this value."""

    def __post_init__(self) -> None:
        as_annotated(self)
        require(
            0 < self.halt_at <= 1,
            f"halt_at of the depth 'universal' must be above 0 and at most 1, got {self.halt_at}",
        )


Depth = StackedDepth | ReversibleDepth | UniversalDepth


def check_depth(place: str, depth: Depth, attention: tuple[AttentionConfig, ...], irreversible: str | None) -> None:
    """Refuse a depth that is incompatible with the layers of an encoder or head.

    Args:
        place: "encoder" or "head".
        attention: the attention of each layer.
        irreversible: the part of its blocks that cannot be inverted (None: all can).

    Raises:
        ConfigError: with the reason.
    """
    as_annotated(depth)
    if isinstance(depth, ReversibleDepth):
        require(irreversible is None, f"depth 'reversible' of the {place} is incompatible with {irreversible}")
        for layer in attention:
            require(
                isinstance(layer.memory, NoMemory) and layer.core.kind not in _MOVING,
                f"depth 'reversible' of the {place} computes each layer twice, which is incompatible with memories "
                f"and with the cores {' and '.join(map(repr, _MOVING))}, whose clusters change with each pass",
            )
    if isinstance(depth, UniversalDepth):
        require(len(attention) > 0, f"depth 'universal' of the {place} needs a layer to repeat, but there is none")
        require(
            all(layer == attention[0] for layer in attention),
            f"depth 'universal' of the {place} repeats one layer: give one attention for all",
        )

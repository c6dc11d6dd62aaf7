"""The attention of one layer: core, memory and position, of which not all combinations are valid."""

from dataclasses import dataclass, field
from typing import Literal

from sortformer.config.checks import as_annotated
from sortformer.config.cores import Core, FullCore
from sortformer.config.mechanisms import CORES, MEMORIES, POSITIONS
from sortformer.config.memories import Memory, NoMemory
from sortformer.errors import ConfigError

__all__ = ["AttentionConfig", "Position"]

Position = Literal["none", "sinusoidal", "learned", "coordinates", "rope", "shaw", "xl", "alibi", "distance_aware"]

_HOW = {
    "add": "adds to the score of each pair of frames",
    "multiply": "multiplies the score of each pair of frames",
    "rotate": "rotates queries and keys",
    "embed": "adds an encoding to each frame",
}


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """The attention of one layer; an invalid combination is refused with the reason."""

    core: Core = field(default_factory=FullCore)
    position: Position = "none"
    memory: Memory = field(default_factory=NoMemory)
    learned_positions: int = 4096
    """Number of frames in the table of the position 'learned'; longer recordings are refused."""

    def __post_init__(self) -> None:
        for part in (self, self.core, self.memory):
            as_annotated(part)
        core, memory = CORES[self.core.kind], MEMORIES[self.memory.kind]
        how = POSITIONS[self.position].how
        if how is not None and how not in core.positions:
            fitting = ", ".join(f"'{name}'" for name, position in POSITIONS.items() if position.how in core.positions)
            raise ConfigError(
                f"the attention core '{core.name}' does not support the position '{self.position}', which {_HOW[how]}; "
                f"it supports 'none'{', ' if fitting else ''}{fitting}"
            )
        if how == "rotate" and (seeing := _sees_places(self.core)):
            raise ConfigError(
                f"the attention core '{core.name}' does not support the position '{self.position}' with {seeing}, "
                "which would depend on absolute positions, not on distances"
            )
        if memory.extra_frames and not core.memory:
            raise ConfigError(
                f"the attention core '{core.name}' does not support the memory '{memory.name}', "
                "which adds frames to those of the chunk"
            )
        if self.learned_positions < 1:
            raise ConfigError(f"learned_positions must be >= 1, got {self.learned_positions}")

    @property
    def core_carries(self) -> bool:
        """Whether the core carries a state from chunk to chunk.

        Not with memories that add frames, which would enter the state twice, nor with positions that score pairs, since
        the state holds no distances.
        """
        causal, how = getattr(self.core, "causal", False), POSITIONS[self.position].how
        fits = how in (None, "embed", "rotate") and not MEMORIES[self.memory.kind].extra_frames
        return CORES[self.core.kind].state and causal and fits

    @property
    def carries(self) -> bool:
        """Whether the layer carries a state from chunk to chunk, in its memory or its core."""
        return self.core_carries or not isinstance(self.memory, NoMemory)


def _sees_places(core: Core) -> str | None:
    """Return the option of a core that uses queries or keys themselves rather than their products, if any."""
    pool = getattr(core, "pool", "mean")
    if pool != "mean":
        return f"the pool '{pool}'"
    return "a dynamic span" if getattr(core, "dynamic", False) else None

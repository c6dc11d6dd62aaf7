"""What a memory is given after each chunk, and how a layer reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

__all__ = ["LayerChunk", "Memory", "Recall"]


@dataclass(frozen=True, slots=True)
class Recall:
    """Frames of the past that stand beside those of the chunk, oldest first."""

    frames: Tensor  # (B, M, D) the layer's inputs of that time, or what became of them
    valid: Tensor  # (B, M)
    at: Tensor  # (B or 1, M) where they stood, in frames from the start; the mean where many became one


@dataclass(frozen=True, slots=True)
class LayerChunk:
    """What a layer did with a chunk of T frames."""

    frames: Tensor  # (B, T, D) its inputs
    valid: Tensor  # (B, T)
    at: Tensor  # (B, T)
    key: Tensor  # (B, H, T, d) without positions
    value: Tensor  # (B, H, T, d)
    read: Callable[[Tensor, Tensor], Tensor]
    """What its queries read (B, H, T, d) from frames (B, n, D) of which (B, n) are valid: content alone, and no
    gradient but that of the frames."""
    usage: Callable[[Recall], Tensor]
    """How much attention (B, M) its queries gave to each frame of the past, summed over queries and heads."""


class Memory(nn.Module):
    """Nothing is remembered."""

    def init_state(self, frames: Tensor) -> Any:
        """Return the state before the first chunk, for frames like these, (B, T, D)."""
        del frames

    def recall(self, state: Any) -> Recall | None:
        """Return the frames of the past that the chunk attends to beside its own."""
        del state

    def mix(self, mixed: Tensor, query: Tensor, state: Any) -> Tensor:
        """Return what attention ``mixed`` (B, H, T, d) with what queries of its shape read from the memory itself."""
        del query, state
        return mixed

    def update(self, state: Any, chunk: LayerChunk) -> tuple[Any, dict[str, Tensor]]:
        """Return the state after a chunk, and losses by name that train what the memory does: sums over frames."""
        del chunk
        return state, {}

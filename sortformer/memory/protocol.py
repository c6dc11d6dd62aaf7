"""The interface of memories: what they are given after each chunk, and how a layer reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

__all__ = ["LayerChunk", "Memory", "Recall"]


@dataclass(frozen=True, slots=True)
class Recall:
    """Past frames that a chunk attends to beside its own, oldest first."""

    frames: Tensor  # (B, M, D) past inputs of the layer, or compressed ones
    valid: Tensor  # (B, M)
    at: Tensor  # (B or 1, M) positions, in frames from the start; means for compressed frames


@dataclass(frozen=True, slots=True)
class LayerChunk:
    """A chunk of T frames as a layer processed it."""

    frames: Tensor  # (B, T, D) its inputs
    valid: Tensor  # (B, T)
    at: Tensor  # (B, T)
    key: Tensor  # (B, H, T, d) without positions
    value: Tensor  # (B, H, T, d)
    read: Callable[[Tensor, Tensor], Tensor]
    """Attends from its queries to frames (B, n, D), valid where (B, n), without positions; returns (B, H, T, d), whose
    gradient flows to these frames only."""
    usage: Callable[[Recall], Tensor]
    """Returns the attention (B, M) of its queries to each past frame, summed over queries and heads."""


class Memory(nn.Module):
    """No memory; base class of the mechanisms."""

    def init_state(self, frames: Tensor) -> Any:
        """Return the initial state, for frames of the shape (but for T) and type of ``frames`` (B, T, D)."""
        del frames

    def recall(self, state: Any) -> Recall | None:
        """Return the past frames that a chunk attends to beside its own."""
        del state

    def mix(self, mixed: Tensor, query: Tensor, state: Any) -> Tensor:
        """Return the output ``mixed`` (B, H, T, d) of attention, combined with the memory's own for the queries."""
        del query, state
        return mixed

    def update(self, state: Any, chunk: LayerChunk) -> tuple[Any, dict[str, Tensor]]:
        """Return the state after a chunk, and the memory's auxiliary losses by name, as sums over frames."""
        del chunk
        return state, {}

"""What an attention core is given and gives back."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

__all__ = ["Context", "Core", "LayerStep", "RecurrentCore", "add_losses"]

Scored = Callable[[slice, Tensor | None], Tensor]
"""From some queries and the indices (s,) of some keys (None: all) to something (B or 1, H, t, s) for each pair."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a core has to know beside queries, keys and values."""

    valid: Tensor | None = None  # (B, S) True where a key may be attended to (None: everywhere)
    past: int = 0
    """How many of the keys stand before the first query: the frames of a memory, which causal cores see as well."""
    bias: Scored | None = None
    """What is added to the scores before they are divided by sqrt(d)."""
    factor: Scored | None = None
    """What multiplies the rectified scores."""


@dataclass(frozen=True, slots=True)
class LayerStep:
    """What a layer, or a stack of them, makes of a chunk or of a whole recording."""

    out: Tensor  # (B, T, D)
    state: Any
    """What it carries to the next chunk."""
    losses: Mapping[str, Tensor] = field(default_factory=dict)
    """What it has to be trained with beside the task, by name."""


def add_losses(*parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the sum of the losses of each name."""
    total: dict[str, Tensor] = {}
    for part in parts:
        for name, loss in part.items():
            total[name] = total[name] + loss if name in total else loss
    return total


class Core(nn.Module, ABC):
    """Mix values by how well queries and keys fit: no projections, no norm, no positions of its own."""

    @abstractmethod
    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d) from query (B, H, T, d), key and value (B, H, S, d); the last T keys are the queries'.

        What stands where a row has no valid key is finite and means nothing.
        """

    def losses(self, query: Tensor, context: Context) -> dict[str, Tensor]:
        """Return losses that train what the core does with queries (B, H, T, d), beside the task, by name.

        Each is a sum over the valid queries, of their means over the heads.
        """
        del query, context
        return {}


class RecurrentCore(Core):
    """A core that can run over chunks: its state holds all that it has to know of the past."""

    @abstractmethod
    def init_state(self, query: Tensor) -> Any:
        """Return the state before the first frame, fit for queries (B, H, T, d) like this one."""

    @abstractmethod
    def step(self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: Any) -> tuple[Tensor, Any]:
        """Return what ``forward`` would give for these frames after all earlier ones, and the state after them."""

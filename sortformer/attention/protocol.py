"""The interface of attention cores: what they are given and what they return."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

__all__ = ["Context", "Core", "LayerStep", "RecurrentCore", "add_losses"]

Scored = Callable[[slice, Tensor | None], Tensor]
"""Takes a slice of the queries and indices (s,) of keys (None: all); returns a value per pair, (B or 1, H, t, s)."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a core is given beside queries, keys and values."""

    valid: Tensor  # (B, S) True where a key may be attended to
    past: int = 0
    """How many keys precede the first query: the frames of a memory, which causal cores see too."""
    bias: Scored | None = None
    """Added to the scores before they are divided by sqrt(d)."""
    factor: Scored | None = None
    """Multiplies the rectified scores."""

    def part(self, rows: slice, columns: Tensor | None = None) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return ``valid``, the bias and the factor of a slice of the queries and some keys (None: all)."""
        valid = self.valid if columns is None else self.valid[:, columns]
        bias, factor = (None if score is None else score(rows, columns) for score in (self.bias, self.factor))
        return valid, bias, factor


@dataclass(frozen=True, slots=True)
class LayerStep:
    """The output of a layer, or of a stack of layers, for a chunk or for a whole recording."""

    out: Tensor  # (B, T, D)
    state: Any
    """The state for the next chunk."""
    losses: Mapping[str, Tensor] = field(default_factory=dict)
    """Auxiliary losses, by name."""


def add_losses(*parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Sum losses by name."""
    total: dict[str, Tensor] = {}
    for part in parts:
        for name, loss in part.items():
            total[name] = total[name] + loss if name in total else loss
    return total


class Core(nn.Module, ABC):
    """Attention itself: its projections, norm and positions are outside."""

    shares_queries = False
    """Whether the keys are the queries, as in Reformer; a memory then stores these."""

    @abstractmethod
    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d) from query (B, H, T, d), key and value (B, H, S, d); the last T keys are the queries'.

        The output of a row without a valid key is finite, and arbitrary.
        """

    def losses(self, query: Tensor, context: Context) -> dict[str, Tensor]:
        """Return the core's auxiliary losses, by name, for queries (B, H, T, d).

        Each is averaged over the heads and summed over the valid queries.
        """
        del query, context
        return {}


class RecurrentCore(Core):
    """A core that can run chunk by chunk, with a state that holds what it needs of the past."""

    @abstractmethod
    def init_state(self, query: Tensor) -> Any:
        """Return the initial state, for queries of the shape (but for T) and type of ``query`` (B, H, T, d)."""

    @abstractmethod
    def step(self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: Any) -> tuple[Tensor, Any]:
        """Return the output of ``forward`` for these frames given all earlier ones, and the next state."""

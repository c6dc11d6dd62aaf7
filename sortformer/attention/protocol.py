"""What an attention core is given and gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

__all__ = ["Context", "Core", "RecurrentCore"]

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


class Core(nn.Module):
    """Mix values by how well queries and keys fit: no projections, no norm, no positions of its own."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d) from query (B, H, T, d), key and value (B, H, S, d); the last T keys are the queries'.

        What stands where a row has no valid key is finite and means nothing.
        """
        raise NotImplementedError


class RecurrentCore(Core):
    """A core that can run over chunks: its state holds all that it has to know of the past."""

    def init_state(self, query: Tensor) -> Any:
        """Return the state before the first frame, fit for queries (B, H, T, d) like this one."""
        raise NotImplementedError

    def step(self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: Any) -> tuple[Tensor, Any]:
        """Return what ``forward`` would give for these frames after all earlier ones, and the state after them."""
        raise NotImplementedError

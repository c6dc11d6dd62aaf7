"""A stack of blocks, which an encoder runs as a whole, and a head from one estimate to the next."""

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor, nn

from sortformer.attention import LayerStep, add_losses

__all__ = ["Stack"]


class Stack(nn.ModuleList):
    """One block after the other."""

    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        super().__init__(blocks)
        self.layers = len(self)

    def init_state(self, x: Tensor) -> tuple[Any, ...]:
        """Return the state of each layer before the first frame, for frames like ``x`` (B, T, D)."""
        blocks: list[Any] = list(self)
        return tuple(block.init_state(x) for block in blocks)

    def forward(
        self, x: Tensor, valid: Tensor, states: Sequence[Any] | None = None, begin: int = 0, end: int | None = None
    ) -> LayerStep:
        """Run the layers from ``begin`` to before ``end`` (None: all) on ``x`` (B, T, D), ``valid`` (B, T).

        With the ``states`` of all layers, ``x`` is the next chunk, and the result has the new states of the layers that
        were run; without, it is a whole recording.
        """
        return self.through(range(begin, self.layers if end is None else end), x, valid, states)

    def through(self, layers: range, x: Tensor, valid: Tensor, states: Sequence[Any] | None) -> LayerStep:
        """Run some layers; arguments are those of ``forward``."""
        steps: list[LayerStep] = []
        for layer in layers:
            steps.append(self.run(layer, x, valid, None if states is None else states[layer]))
            x = steps[-1].out
        return LayerStep(x, tuple(step.state for step in steps), add_losses(*(step.losses for step in steps)))

    def run(self, layer: int, x: Tensor, valid: Tensor, state: Any = None) -> LayerStep:
        """Run one layer, from 0."""
        return self[layer](x, valid, state)

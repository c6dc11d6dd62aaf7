"""A stack of blocks: what an encoder or a head runs, whole or from one estimate to the next."""

from collections.abc import Iterable

from torch import Tensor, nn

from sortformer.attention import LayerStep

__all__ = ["Stack"]


class Stack(nn.ModuleList):
    """One block after the other."""

    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        super().__init__(blocks)
        self.layers = len(self)

    def forward(self, x: Tensor, valid: Tensor | None, begin: int = 0, end: int | None = None) -> LayerStep:
        """Run the layers from ``begin`` to before ``end`` (None: all) on ``x`` (B, T, D), ``valid`` (B, T)."""
        for layer in range(begin, self.layers if end is None else end):
            x = self[layer](x, valid)
        return LayerStep(x, None)

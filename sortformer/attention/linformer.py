"""Linformer with a projection that knows no length: groups of keys and values become one each."""

import torch
from torch import Tensor, nn

from sortformer.attention.combiner import expectation, validity
from sortformer.attention.protocol import Context, Core

__all__ = ["LinformerAttention"]


class LinformerAttention(Core):
    """Wang et al., arXiv 2006.04768, section 4, "general projections": a mean, or a convolution, over ``ratio`` frames.

    The convolution weighs the frames of a group alike in all channels, and starts as their mean. Frames that are not
    valid count as nothing, and a group of them alone is not attended to.
    """

    def __init__(self, ratio: int, projection: str) -> None:
        super().__init__()
        self.ratio = ratio
        start = torch.full((ratio,), 1 / ratio)
        self.key_weight, self.value_weight = (
            (nn.Parameter(start.clone()), nn.Parameter(start.clone())) if projection == "conv" else (None, None)
        )

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d); see :class:`Core`."""
        tail = -key.shape[2] % self.ratio
        there = nn.functional.pad(validity(key, context.valid), (0, tail)).unflatten(1, (-1, self.ratio))[:, None]
        key, value = (
            self._shorten(nn.functional.pad(x, (0, 0, 0, tail)).unflatten(2, (-1, self.ratio)), there, weight)
            for x, weight in ((key, self.key_weight), (value, self.value_weight))
        )
        return expectation(query, key, value, there.any(-1)[:, :, None])

    def _shorten(self, x: Tensor, there: Tensor, weight: Tensor | None) -> Tensor:
        if weight is None:
            return (x * there[..., None]).sum(dim=3) / there.sum(dim=3).clamp(min=1)[..., None]
        return (x * (there * weight)[..., None]).sum(dim=3)

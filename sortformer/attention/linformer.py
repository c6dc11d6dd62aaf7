"""Linformer: keys and values shortened along time, by sums of frames with weights that depend on position."""

import torch
from torch import Tensor, nn

from sortformer.attention.blocks import cut, fitting
from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import expectation

__all__ = ["LinformerAttention"]


class LinformerAttention(Core):
    """Wang et al., arXiv 2006.04768, section 4, for any length: every chunk of frames becomes ``slots`` frames.

    With chunks as long as the recordings this is the paper's projection by learned E and F, shared by the heads; with
    one slot a chunk it is its "general projection", a convolution, or a mean if not learned. Weights are initialised to
    the means of equal parts of the chunk. Invalid frames contribute nothing; a chunk of invalid frames only is not
    attended to.
    """

    def __init__(self, chunk: int, slots: int, learned: bool) -> None:
        super().__init__()
        self.chunk = chunk
        start = torch.eye(slots).repeat_interleave(chunk // slots, dim=1) * slots / chunk  # (slots, chunk)
        self.key_weight, self.value_weight = (
            (nn.Parameter(start.clone()), nn.Parameter(start.clone())) if learned else (None, None)
        )

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        # Learned weights belong to positions in the chunk, whose length is therefore fixed.
        chunk = fitting(self.chunk, key.shape[2]) if self.key_weight is None else self.chunk
        there = cut(context.valid[:, None], chunk)
        key, value = (
            self._shorten(cut(x, chunk), there, weight)
            for x, weight in ((key, self.key_weight), (value, self.value_weight))
        )
        seen = there.any(-1, keepdim=True).expand(-1, -1, -1, key.shape[3]).flatten(2)
        return expectation(query, key.flatten(2, 3), value.flatten(2, 3), seen[:, :, None])

    def _shorten(self, x: Tensor, there: Tensor, weight: Tensor | None) -> Tensor:
        """Return the slots (B, H, n, slots, d) of chunks (B, H, n, chunk, d)."""
        x = x * there[..., None]
        if weight is None:
            return x.sum(dim=3, keepdim=True) / there.sum(dim=3).clamp(min=1)[..., None, None]
        return weight @ x

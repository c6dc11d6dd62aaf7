"""Full attention over PyTorch's fused kernels."""

import torch
from torch import Tensor

from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import attend, tiles

__all__ = ["FullAttention"]

_WHOLE_FRAMES = 1024  # up to this length, all scores at once need little memory, and are faster


class FullAttention(Core):
    """Every frame attends to every frame or, if causal, to those up to itself.

    With a bias, a factor or a causal mask, and without gradient, long recordings are processed in tiles of queries, so
    that memory is linear in the length.
    """

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        paired = self.causal or context.bias is not None or context.factor is not None
        if torch.is_grad_enabled() or not paired or key.shape[2] <= _WHOLE_FRAMES:
            return self._rows(slice(None), query, key, value, context)
        parts = [self._rows(rows, query[:, :, rows], key, value, context) for rows in tiles(query.shape[2])]
        return torch.cat(parts, dim=2)

    def _rows(self, rows: slice, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        valid, bias, factor = context.part(rows)
        allowed = valid[:, None, None]
        if self.causal:
            at = torch.arange(key.shape[2], device=query.device)
            allowed = allowed & (at <= at[context.past :][rows, None])
        return attend(query, key, value, allowed, bias, factor)

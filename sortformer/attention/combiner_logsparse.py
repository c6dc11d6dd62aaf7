"""Combiner-Logsparse: itself directly, all others through spans that double in length as they get farther."""

import torch
from torch import Tensor, nn

from sortformer.attention.combiner import Abstraction, validity
from sortformer.attention.full import MASKED_SCORE
from sortformer.attention.protocol import Context, Core

__all__ = ["CombinerLogsparse"]


class CombinerLogsparse(Core):
    """Ren et al., arXiv 2107.05768, section 4.2, and its mirror image to the right where it is not causal.

    Halve the recording again and again: the spans of frame i are the siblings of all the halves that i lies in. Those
    before it are the spans of the paper (the binary digits of i). A sibling of one frame is attended to directly.
    """

    def __init__(self, head_dim: int, pool: str, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.abstraction = Abstraction(head_dim, pool)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d); see :class:`Core`."""
        frames = query.shape[2]
        levels = (frames - 1).bit_length()
        tail = (1 << levels) - frames
        there = nn.functional.pad(validity(key, context.valid), (0, tail))[:, None]  # (B, 1, L)
        query, key, value = (nn.functional.pad(x, (0, 0, 0, tail)) for x in (query, key, value))
        scale = query.shape[-1] ** -0.5
        logits = [((query * key).sum(-1) * scale).masked_fill(~there, MASKED_SCORE)]
        values = []
        for level in range(levels):
            size = 1 << level
            spans = [x.unflatten(2, (-1, size)) for x in (key, query, value)]
            valid = there.unflatten(2, (-1, size))
            if level == 0:
                keys, mixed, some = spans[0][:, :, :, 0], spans[2][:, :, :, 0], valid[..., 0]
            else:
                groups = self.abstraction(*spans, valid)
                keys, mixed, some = groups.key, groups.value, groups.valid
            keys, mixed, some = (_siblings(x) for x in (keys, mixed, some))
            if self.causal:
                some = some & (torch.arange(some.shape[2], device=some.device) % 2 == 1)
            score = (spans[1] * keys[:, :, :, None]).sum(-1) * scale
            logits.append(score.masked_fill(~some[..., None], MASKED_SCORE).flatten(2))
            values.append(mixed)
        weights = torch.stack(logits, dim=-1).softmax(dim=-1)
        out = weights[..., :1] * value
        for level, mixed in enumerate(values):
            weight = weights[..., level + 1].unflatten(2, (-1, 1 << level))
            out = out + (weight[..., None] * mixed[:, :, :, None]).flatten(2, 3)
        return out[:, :, :frames]


def _siblings(x: Tensor) -> Tensor:
    """Swap neighbours along the third axis: 0 with 1, 2 with 3, ..."""
    return x.unflatten(2, (-1, 2)).flip(3).flatten(2, 3)

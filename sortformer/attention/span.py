"""Adaptive span: each head learns the width of its window, or to predict it for each frame."""

import torch
from torch import Tensor, nn

from sortformer.attention.protocol import Context, RecurrentCore
from sortformer.attention.softmax import attend, tiles
from sortformer.memory.key_values import KeyValues
from sortformer.precision import wide

__all__ = ["SpanAttention"]

_LEAST_WEIGHT = 1e-30


class SpanAttention(RecurrentCore):
    """Weights m(|i - j|) exp(s_ij) with m(x) = clamp((R + z - x) / R, 0, 1): Sukhbaatar et al., arXiv 1905.07799.

    The span z = S sigmoid(b + v . q_i) of at most S frames falls off over R more; v is used if dynamic (section 2.3 has
    the input in place of the query).
    """

    def __init__(
        self, heads: int, head_dim: int, max_frames: int, ramp_frames: int, dynamic: bool, causal: bool
    ) -> None:
        super().__init__()
        self.max_frames = max_frames
        self.ramp_frames = ramp_frames
        self.causal = causal
        self.level = nn.Parameter(torch.zeros(heads))
        self.direction = nn.Parameter(torch.zeros(heads, head_dim)) if dynamic else None

    def spans(self, query: Tensor) -> Tensor:
        """Return the span (B, H, T) of each query (B, H, T, d), in frames on each side, at least in float32."""
        level = self.level[:, None].expand(query.shape[:3])
        if self.direction is not None:
            level = level + (query @ self.direction[..., None])[..., 0]
        return self.max_frames * wide(level).sigmoid()  # half precision has neither 2,049 nor 1e-30

    def losses(self, query: Tensor, context: Context) -> dict[str, Tensor]:
        """Return the sum over valid queries (B, H, T, d) of their mean spans, relative to the longest.

        The penalty of section 2.2, or 2.3 if dynamic, without its weight: only this loss makes spans short.
        """
        share = self.spans(query).mean(dim=1) / self.max_frames
        return {"span": (share * context.valid[:, context.past :]).sum()}

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        spans, reach = self.spans(query), self.max_frames + self.ramp_frames
        every, mixed = torch.arange(key.shape[2], device=query.device), []
        for rows in tiles(query.shape[2]):
            first, last = context.past + rows.start, context.past + rows.stop
            columns = every[max(0, first - reach) : last if self.causal else last + reach]
            distance = every[first:last, None] - columns
            weight = (self.ramp_frames + spans[:, :, rows, None] - distance.abs()) / self.ramp_frames
            allowed = (weight > 0) & (distance >= 0) if self.causal else weight > 0
            # Scaled, because the bias is added to the scores before they are divided by sqrt(d).
            bias = weight.clamp(_LEAST_WEIGHT, 1.0).log().to(query.dtype) * query.shape[-1] ** 0.5
            valid, added, factor = context.part(rows, columns)
            bias = bias if added is None else bias + added
            keys, values = key[:, :, columns], value[:, :, columns]
            mixed.append(attend(query[:, :, rows], keys, values, allowed & valid[:, None, None], bias, factor))
        return torch.cat(mixed, dim=2)

    def init_state(self, query: Tensor) -> KeyValues:
        return KeyValues.start(query)

    def step(
        self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: KeyValues
    ) -> tuple[Tensor, KeyValues]:
        known = state.then(key, value, context.valid)
        out = self(query, known.key, known.value, Context(known.valid, state.key.shape[2]))
        return out, known.last(self.max_frames + self.ramp_frames)

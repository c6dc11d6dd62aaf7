"""Attention by a kernel phi(q) . phi(k) in place of the exponential: its state is running sums over the past.

Features of keys come with a logarithmic scale: phi(k_j) = exp(s_j) features_j. Sums are kept relative to the largest
scale so far, so they do not depend on later frames. Features, scales and sums are float32 at least: in half precision,
exponentials of moderately large queries and keys vanish, sums of some minutes no longer change when a frame is added,
and those of an hour overflow. (Autocast still computes products in half precision.)
"""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from sortformer.attention.protocol import Context, RecurrentCore
from sortformer.attention.softmax import tiles
from sortformer.precision import wide

__all__ = ["KernelAttention", "KernelState"]

_NO_SCALE = -1e9  # finite, so that differences of scales are finite too
_LEAST_SUM = 1e-30


@dataclass(frozen=True, slots=True)
class KernelState:
    """Running sums over the past: m features, d channels."""

    mixed: Tensor  # (B, H, m, d) the sum of phi(k) v, divided by exp(scale)
    total: Tensor  # (B, H, m) the sum of phi(k), divided likewise
    scale: Tensor  # (B, H, 1)


class KernelAttention(RecurrentCore):
    """Linear attention, Katharopoulos et al., arXiv 2006.16236, equations 5 and 9, for any feature map."""

    features: int

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    @abstractmethod
    def query_features(self, query: Tensor) -> Tensor:
        """Return (B, H, T, m), up to a positive factor for each query; queries, as keys, are at least float32."""

    @abstractmethod
    def key_features(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, H, T, m) and their logarithmic scale (B, H, T)."""

    def init_state(self, query: Tensor) -> KernelState:
        """Return the empty sums."""
        batch, heads, _, dim = query.shape
        query = wide(query)
        return KernelState(
            query.new_zeros(batch, heads, self.features, dim),
            query.new_zeros(batch, heads, self.features),
            query.new_full((batch, heads, 1), _NO_SCALE),
        )

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        state, past = self.init_state(query), context.past if self.causal else key.shape[2]
        for block in tiles(past):
            state = self._absorb(state, key[:, :, block], value[:, :, block], context.valid[:, block])
        if self.causal:
            return self._scan(query, key[:, :, past:], value[:, :, past:], context.valid[:, past:], state)[0]
        return torch.cat([self._read(query[:, :, block], state) for block in tiles(query.shape[2])], dim=2)

    def step(
        self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: KernelState
    ) -> tuple[Tensor, KernelState]:
        return self._scan(query, key, value, context.valid, state)

    def _scan(
        self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor, state: KernelState
    ) -> tuple[Tensor, KernelState]:
        out = []
        for block in tiles(query.shape[2]):
            keys, values, there = key[:, :, block], value[:, :, block], valid[:, block]
            out.append(self._read_within(query[:, :, block], keys, values, there, state))
            state = self._absorb(state, keys, values, there)
        return torch.cat(out, dim=2), state

    def _absorb(self, state: KernelState, key: Tensor, value: Tensor, valid: Tensor) -> KernelState:
        features, scales = self._valid_features(key, valid)
        scale = torch.maximum(state.scale, scales.amax(dim=-1, keepdim=True)).detach()  # cancels in the quotient
        features = features * (scales - scale).exp()[..., None]
        kept = (state.scale - scale).exp()
        return KernelState(
            state.mixed * kept[..., None] + features.transpose(-1, -2) @ wide(value),
            state.total * kept + features.sum(dim=2),
            scale,
        )

    def _read(self, query: Tensor, state: KernelState) -> Tensor:
        features = self.query_features(wide(query))
        return _quotient(features @ state.mixed, features @ state.total[..., None]).to(query.dtype)

    def _read_within(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor, state: KernelState) -> Tensor:
        """Attend to the past in ``state`` and, within the block, to keys up to each query."""
        asked = self.query_features(wide(query))
        features, scales = self._valid_features(key, valid)
        scale = torch.maximum(scales.cummax(dim=-1).values, state.scale).detach()  # (B, H, T): no look-ahead
        weights = (asked @ features.transpose(-1, -2)).tril()
        # Not clamped at 0, where the largest key lies: the gradient of a clamp at its bound depends on torch's version.
        weights = weights * (scales[:, :, None] - scale[..., None]).tril().exp()
        kept = (state.scale - scale).exp()[..., None]
        mixed = weights @ wide(value) + kept * (asked @ state.mixed)
        total = weights.sum(dim=-1, keepdim=True) + kept * (asked @ state.total[..., None])
        return _quotient(mixed, total).to(query.dtype)

    def _valid_features(self, key: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        features, scales = self.key_features(wide(key))
        return features * valid[:, None, :, None], scales.masked_fill(~valid[:, None], _NO_SCALE)


def _quotient(mixed: Tensor, total: Tensor) -> Tensor:
    """Divide by the sum of weights; return 0 where that is close to 0, of either sign, as when no key is valid."""
    nothing = total.abs() < _LEAST_SUM
    return mixed.masked_fill(nothing, 0.0) / total.masked_fill(nothing, 1.0)

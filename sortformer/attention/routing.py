"""Routing attention: k-means over queries and keys; frames near the same centroid attend to each other."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sortformer.attention.clusters import Clusters, latest, members, take
from sortformer.attention.local import local_attention
from sortformer.attention.protocol import Context, RecurrentCore
from sortformer.attention.softmax import expectation

__all__ = ["RoutingAttention", "RoutingState"]


@dataclass(frozen=True, slots=True)
class RoutingState:
    """The last ``window`` frames of each of k clusters, sorted by cluster and time."""

    key: Tensor  # (B, H, k * window, d) normalised
    value: Tensor  # (B, H, k * window, d)
    cluster: Tensor  # (B, H, k * window); k marks an empty place


class RoutingAttention(RecurrentCore):
    """Roy et al., arXiv 2003.05997, section 4: each centroid takes its ``window`` nearest queries and as many keys.

    Queries and keys are normalised without learned weights. A frame taken by several centroids gets the mean of their
    outputs; one taken by none gets zero.

    The nearest frames depend on the whole recording. So if causal, a frame belongs to the centroid nearest to its key,
    and attends to itself and to the last ``window`` earlier frames of the same centroid.
    """

    def __init__(self, heads: int, head_dim: int, clusters: int, window: int, decay: float, causal: bool) -> None:
        super().__init__()
        self.window = window
        self.causal = causal
        self.clusters = Clusters(heads, head_dim, clusters, decay)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        query, key = (nn.functional.layer_norm(x, x.shape[-1:]) for x in (query, key))
        if self.causal:
            return self._last(query, key, value, self.clusters.nearest(key, context.valid))
        return self._nearest(query, key, value, context.valid)

    def init_state(self, query: Tensor) -> RoutingState:
        batch, heads, _, dim = query.shape
        number = self.clusters.number
        none = query.new_zeros(batch, heads, number * self.window, dim)
        return RoutingState(none, none, none.new_full(none.shape[:3], number, dtype=torch.int64))

    def step(
        self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: RoutingState
    ) -> tuple[Tensor, RoutingState]:
        past, number = state.key.shape[2], self.clusters.number
        query, key = (nn.functional.layer_norm(x, x.shape[-1:]) for x in (query, key))
        cluster = torch.cat((state.cluster, self.clusters.nearest(key, context.valid)), dim=2)
        key, value = torch.cat((state.key, key), dim=2), torch.cat((state.value, value), dim=2)
        asked = nn.functional.pad(query, (0, 0, past, 0))  # placeholders: the outputs of past frames are dropped
        out = self._last(asked, key, value, cluster)[:, :, past:]
        index, there = latest(cluster, number, self.window)
        kept = cluster.gather(2, index).masked_fill(~there, number)
        return out, RoutingState(take(key, index), take(value, index), kept)

    def _nearest(self, query: Tensor, key: Tensor, value: Tensor, valid: Tensor) -> Tensor:
        near = [self.clusters.similarity(x).transpose(-1, -2) for x in (query, key)]
        if self.training:
            self.clusters.follow(torch.cat((query, key), dim=2), valid.repeat(1, 2))
        taken = min(self.window, query.shape[2])
        hidden = ~valid[:, None, None]
        (asking, asked) = (x.masked_fill(hidden, -torch.inf).topk(taken, dim=-1).indices for x in near)
        queries, keys, values = (
            take(x, index) for x, index in ((query, asking), (key, asked), (value, asked))
        )  # (B, H, k, w, d)
        there = valid[:, None, None].expand(*near[0].shape[:3], -1)
        mixed = expectation(queries, keys, values, there.gather(3, asked)[..., None, :])
        heard = there.gather(3, asking) & there.gather(3, asked).any(-1, keepdim=True)
        mixed = (mixed * heard[..., None]).flatten(2, 3)
        index = asking.flatten(2)
        total = torch.zeros_like(value).scatter_add(2, index[..., None].expand(mixed.shape), mixed)
        count = value.new_zeros(value.shape[:3]).scatter_add(2, index, heard.flatten(2).to(value.dtype))
        return total / count.clamp(min=1)[..., None]

    def _last(self, query: Tensor, key: Tensor, value: Tensor, cluster: Tensor) -> Tensor:
        out = torch.zeros_like(value)
        for index, there in members(cluster, self.clusters.number):
            # Members differ between heads, so heads become rows of the batch.
            queries, keys, values = (take(x, index).flatten(0, 1)[:, None] for x in (query, key, value))
            mixed = local_attention(queries, keys, values, there.flatten(0, 1), self.window, causal=True)
            mixed = mixed.view(*index.shape, -1)
            out = out.scatter_add(2, index[..., None].expand(mixed.shape), mixed * there[..., None])
        return out

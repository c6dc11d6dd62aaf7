"""Routing attention: k-means over queries and keys; what is near the same centroid attends to each other."""

import torch
from torch import Tensor, nn

from sortformer.attention.combiner import expectation, validity
from sortformer.attention.protocol import Context, Core

__all__ = ["RoutingAttention"]


class RoutingAttention(Core):
    """Roy et al., arXiv 2003.05997, section 4: each centroid takes its ``window`` nearest queries and as many keys.

    Queries and keys are normalised without learned weights. A frame that several centroids take gets the mean of what
    they say, one that none takes gets zero. Centroids follow the frames in training alone, by ``follow``.
    """

    def __init__(self, heads: int, head_dim: int, clusters: int, window: int, decay: float) -> None:
        super().__init__()
        self.window = window
        self.decay = decay
        self.centroids: Tensor
        self.register_buffer("centroids", nn.functional.normalize(torch.randn(heads, clusters, head_dim), dim=-1))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d); see :class:`Core`."""
        valid = validity(key, context.valid)
        query, key = (nn.functional.layer_norm(x, x.shape[-1:]) for x in (query, key))
        near = [(x @ self.centroids.to(x.dtype).transpose(-1, -2)).transpose(-1, -2) for x in (query, key)]
        if self.training:
            self.follow(query, key, valid)
        taken = min(self.window, query.shape[2])
        hidden = ~valid[:, None, None]
        (asking, asked) = (x.masked_fill(hidden, -torch.inf).topk(taken, dim=-1).indices for x in near)
        queries, keys, values = (
            _take(x, index) for x, index in ((query, asking), (key, asked), (value, asked))
        )  # (B, H, k, w, d)
        there = valid[:, None, None].expand(*near[0].shape[:3], -1)
        mixed = expectation(queries, keys, values, there.gather(3, asked)[..., None, :])
        heard = there.gather(3, asking) & there.gather(3, asked).any(-1, keepdim=True)
        mixed = (mixed * heard[..., None]).flatten(2, 3)
        index = asking.flatten(2)
        total = torch.zeros_like(value).scatter_add(2, index[..., None].expand(mixed.shape), mixed)
        count = value.new_zeros(value.shape[:3]).scatter_add(2, index, heard.flatten(2).to(value.dtype))
        return total / count.clamp(min=1)[..., None]

    @torch.no_grad()
    def follow(self, query: Tensor, key: Tensor, valid: Tensor) -> None:
        """Move each centroid towards the mean of the queries and keys (B, H, T, d) that it is the nearest of."""
        frames = torch.cat((query, key), dim=2).transpose(0, 1).flatten(1, 2).to(self.centroids.dtype)
        counts = valid.repeat(1, 2).flatten()
        nearest = (frames @ self.centroids.transpose(-1, -2)).argmax(dim=-1)  # (H, B * 2 T)
        member = nn.functional.one_hot(nearest, self.centroids.shape[1]).to(frames.dtype) * counts[:, None]
        size = member.sum(dim=1)[..., None]
        mean = (member.transpose(-1, -2) @ frames) / size.clamp(min=1)
        moved = self.decay * self.centroids + (1 - self.decay) * mean
        moved = nn.functional.normalize(moved, dim=-1)
        self.centroids.copy_(torch.where(size > 0, moved, self.centroids))


def _take(x: Tensor, index: Tensor) -> Tensor:
    """Return the frames (B, H, k, w, d) of ``x`` (B, H, T, d) with the indices (B, H, k, w)."""
    flat = index.flatten(2)[..., None].expand(-1, -1, -1, x.shape[-1])
    return x.gather(2, flat).unflatten(2, index.shape[2:])

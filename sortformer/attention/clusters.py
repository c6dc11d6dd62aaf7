"""Clusters of frames by k-means: centroids, which training updates, and the frames of each cluster."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

__all__ = ["Clusters", "latest", "members", "rescale", "take"]


class Clusters(nn.Module):
    """Roy et al., arXiv 2003.05997, section 4: spherical k-means per head, over frames without learned weights."""

    def __init__(self, heads: int, head_dim: int, number: int, decay: float) -> None:
        super().__init__()
        self.number = number
        self.decay = decay
        self.centroids: Tensor
        self.register_buffer("centroids", nn.functional.normalize(torch.randn(heads, number, head_dim), dim=-1))

    def similarity(self, frames: Tensor) -> Tensor:
        """Return the similarity (B, H, T, k) of the frames (B, H, T, d) and the centroids, by dot product."""
        return frames @ self.centroids.to(frames.dtype).transpose(-1, -2)

    def nearest(self, frames: Tensor, valid: Tensor) -> Tensor:
        """Return the cluster (B, H, T) of each frame (B, H, T, d); that of frames not ``valid`` (B, T) is ``number``.

        In training, :meth:`follow` then updates the centroids.
        """
        cluster = self.similarity(frames).argmax(dim=-1).masked_fill(~valid[:, None], self.number)
        if self.training:
            self.follow(frames, valid)
        return cluster

    @torch.no_grad()
    def follow(self, frames: Tensor, valid: Tensor) -> None:
        """Move each centroid towards the mean of the ``valid`` (B, T) frames (B, H, T, d) nearest to it."""
        frames = frames.transpose(0, 1).flatten(1, 2).to(self.centroids.dtype)
        nearest = (frames @ self.centroids.transpose(-1, -2)).argmax(dim=-1)  # (H, B * T)
        member = nn.functional.one_hot(nearest, self.number).to(frames.dtype) * valid.flatten()[:, None]
        size = member.sum(dim=1)[..., None]
        mean = (member.transpose(-1, -2) @ frames) / size.clamp(min=1)
        moved = nn.functional.normalize(self.decay * self.centroids + (1 - self.decay) * mean, dim=-1)
        self.centroids.copy_(torch.where(size > 0, moved, self.centroids))


@torch.no_grad()
def rescale(model: nn.Module) -> None:
    """Normalise the centroids of a mean of models to length one again: means are shorter, to varying degrees."""
    for module in model.modules():
        if isinstance(module, Clusters):
            module.centroids.copy_(nn.functional.normalize(module.centroids, dim=-1))


def members(cluster: Tensor, number: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, for each of ``number`` clusters, the indices (B, H, w) of its frames by time, and which of them exist.

    ``cluster`` (B, H, T) is the cluster of each frame; w is the largest size of the cluster in any row and head.
    """
    order, starts, sizes = _sorted(cluster, number)
    for one in range(number):
        size = sizes[..., one, None]
        place = torch.arange(max(1, int(size.max())), device=cluster.device)
        yield order.gather(2, (starts[..., one, None] + place).clamp(max=cluster.shape[2] - 1)), place < size


def latest(cluster: Tensor, number: int, count: int) -> tuple[Tensor, Tensor]:
    """Return the indices (B, H, number * count) of the last ``count`` frames of each cluster, and which of them exist.

    They are sorted by cluster, then by time.
    """
    order, starts, sizes = _sorted(cluster, number)
    place = sizes[..., :number, None] - count + torch.arange(count, device=cluster.device)  # within the cluster
    at = (starts[..., :number, None] + place).clamp(min=0).flatten(2)
    return order.gather(2, at), (place >= 0).flatten(2)


def _sorted(cluster: Tensor, number: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return frame indices (B, H, T) sorted by cluster and time, and the clusters' starts and sizes there (B, H, n)."""
    order = cluster.argsort(dim=-1, stable=True)
    sizes = cluster.new_zeros(*cluster.shape[:2], number + 1).scatter_add(2, cluster, torch.ones_like(cluster))
    return order, sizes.cumsum(dim=-1) - sizes, sizes


def take(x: Tensor, index: Tensor) -> Tensor:
    """Return the frames (B, H, ..., d) of ``x`` (B, H, T, d) with the indices (B, H, ...)."""
    flat = index.flatten(2)[..., None].expand(-1, -1, -1, x.shape[-1])
    return x.gather(2, flat).unflatten(2, index.shape[2:])

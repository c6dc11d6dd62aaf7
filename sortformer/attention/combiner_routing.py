"""Combiner-Routing: own cluster directly, each other cluster through its abstraction."""

import torch
from torch import Tensor, nn

from sortformer.attention.blocks import pairs_within
from sortformer.attention.clusters import Clusters, members, take
from sortformer.attention.combiner import Abstraction, Groups
from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import expectation, masked, scores

__all__ = ["CombinerRouting"]


class CombinerRouting(Core):
    """Ren et al., arXiv 2107.05768, section 4.4, equations 11 and 12.

    A frame belongs to the centroid that is nearest to its key, normalised without learned weights. If causal, a group
    is a cluster up to the query, so that a cluster has as many abstractions as frames.
    """

    def __init__(self, heads: int, head_dim: int, clusters: int, decay: float, pool: str, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.clusters = Clusters(heads, head_dim, clusters, decay)
        self.abstraction = Abstraction(head_dim, pool)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        cluster = self.clusters.nearest(nn.functional.layer_norm(key, key.shape[-1:]), context.valid)  # (B, H, T)
        total, own = query.new_zeros(query.shape[:3]), torch.zeros_like(value)
        logits, values = [], []
        for number, (index, there) in enumerate(members(cluster, self.clusters.number)):
            keys, queries, held = (take(x, index) for x in (key, query, value))
            weight, mixed = self._direct(keys, queries, held, there)
            total = total.scatter_add(2, index, weight * there)
            own = own.scatter_add(2, index[..., None].expand(mixed.shape), mixed * there[..., None])
            mine = cluster == number
            if self.causal:
                groups = self._so_far(keys, queries, held, there, mine.cumsum(dim=-1))
            else:
                groups = self._whole(keys, queries, held, there)
            score = (query * groups.key).sum(dim=-1) * query.shape[-1] ** -0.5
            logits.append(masked(score, ~mine & groups.valid))
            values.append(groups.value)
        weights = torch.stack((total, *logits), dim=-1).softmax(dim=-1)[..., None].unbind(dim=-2)
        return sum((weight * mixed for weight, mixed in zip(weights[1:], values, strict=True)), weights[0] * own)

    def _direct(self, key: Tensor, query: Tensor, value: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Attend among the members (B, H, w, d) of a cluster; return log-sum-exps (B, H, w) of scores, and outputs."""
        allowed = pairs_within(there.shape[-1], self.causal, key.device) & there[..., None, :]
        logits = masked(scores(query, key), allowed)
        return logits.logsumexp(dim=-1), logits.softmax(dim=-1) @ value

    def _whole(self, key: Tensor, query: Tensor, value: Tensor, there: Tensor) -> Groups:
        """Return the members as the one group (B, H, 1, d) that all other frames see."""
        return self.abstraction(key[:, :, None], query[:, :, None], value[:, :, None], there[:, :, None])

    def _so_far(self, key: Tensor, query: Tensor, value: Tensor, there: Tensor, seen: Tensor) -> Groups:
        """Return, for each frame of the recording, the group (B, H, T, d) of the first ``seen`` (B, H, T) members."""
        elements = (nn.functional.pad(x, (0, 0, 0, 1)) for x in self.abstraction.elements(key, query))
        keys, queries = (self.abstraction.before(x, nn.functional.pad(there, (0, 1))) for x in elements)
        size = torch.arange(there.shape[-1] + 1, device=key.device)
        mixed = expectation(queries, key, value, size[:-1] < size[:, None])
        return Groups(take(keys, seen), take(mixed, seen), seen > 0)

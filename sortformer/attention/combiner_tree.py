"""Combiners on a tree: own block directly, all others through groups that grow with the distance."""

import torch
from torch import Tensor

from sortformer.attention.blocks import cut, fitting, joined, pairs_within
from sortformer.attention.combiner import Abstraction, Groups
from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import expectation, masked, scores

__all__ = ["CombinerTree"]


class CombinerTree(Core):
    """Blocks are the leaves of a tree in which ``fan_out`` neighbours form a group, up to a root with all frames.

    A frame attends to its block directly, and to the siblings of its block, of the group around it, and so on; if
    causal, to earlier siblings only.

    - Combiner-Logsparse (Ren et al., arXiv 2107.05768, section 4.2) has blocks and groups of two, so that the siblings
      before a frame are the spans of its index's binary digits; a group distributes its weight over all of its frames.
    - Hierarchical (``nested``, section 3.1, "further hierarchical decomposition"): a group distributes its weight over
      its parts by softmax(q_group . k_part), and these over theirs.
    """

    def __init__(self, head_dim: int, block: int, fan_out: int, pool: str, nested: bool, causal: bool) -> None:
        super().__init__()
        self.block = block
        self.fan_out = fan_out
        self.nested = nested
        self.causal = causal
        self.abstraction = Abstraction(head_dim, pool)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        frames = query.shape[2]
        block = fitting(self.block, frames)
        there = context.valid[:, None]  # (B, 1, T)
        asked, keys, values, valid = (cut(x, block) for x in (query, key, value, there))
        within = pairs_within(block, self.causal, query.device)
        logits = [joined(masked(scores(asked, keys), within & valid[..., None, :]), frames)]
        groups, size = self.abstraction(keys, asked, values, valid), block
        siblings = []
        while (nodes := groups.key.shape[2]) > 1:
            fan = min(self.fan_out, nodes)
            parts = Groups(*(cut(x, fan) for x in (groups.key, groups.value, groups.valid)))
            own = torch.eye(fan, dtype=torch.bool, device=query.device)
            others = (pairs_within(fan, self.causal, query.device) & ~own).repeat_interleave(size, dim=0)
            family = scores(cut(query, size * fan), parts.key)  # (B, H, n, size * fan, fan)
            logits.append(joined(masked(family, others & parts.valid[..., None, :]), frames))
            siblings.append((parts.value, size * fan))
            size *= fan
            if nodes == fan:
                break  # the root has no sibling that attends to it
            groups = self._parents(parts, *(cut(x, size) for x in (query, key, value, there)))
        weights = torch.cat(logits, dim=-1).softmax(dim=-1).split([x.shape[-1] for x in logits], dim=-1)
        out = joined(cut(weights[0], block) @ values, frames)
        for weight, (mixed, span) in zip(weights[1:], siblings, strict=True):
            out = out + joined(cut(weight, span) @ mixed, frames)
        return out

    def _parents(self, parts: Groups, query: Tensor, key: Tensor, value: Tensor, valid: Tensor) -> Groups:
        """Return one group (B, H, n, d) for each family of parts (B, H, n, fan out, d), given its frames."""
        if not self.nested:
            return self.abstraction(key, query, value, valid)
        keys, queries = (self.abstraction.pooled(x, valid) for x in self.abstraction.elements(key, query))
        mixed = expectation(queries[..., None, :], parts.key, parts.value, parts.valid[..., None, :])[..., 0, :]
        return Groups(keys, mixed, valid.any(-1))

"""kNN memory: each query attends to its nearest keys of a long past (Memorizing Transformer)."""

import math

import torch
from torch import Tensor, nn

from sortformer.memory.key_values import KeyValues
from sortformer.memory.protocol import LayerChunk, Memory

__all__ = ["Nearest"]


class Nearest(Memory):
    """Wu et al., arXiv 2203.08913, section 3: exact search, no gradient into the past.

    A head computes softmax(t q . k) v over its ``neighbours`` nearest keys, with queries and keys of length one and t
    learned, and a learned gate mixes this with its attention to the chunk. Without a past, attention is unchanged.
    """

    def __init__(self, heads: int, length: int, neighbours: int) -> None:
        super().__init__()
        self.length = length
        self.neighbours = neighbours
        self.gate = nn.Parameter(torch.zeros(heads))
        self.log_sharpness = nn.Parameter(torch.full((heads,), math.log(10.0)))

    def init_state(self, frames: Tensor) -> KeyValues:
        heads = len(self.gate)
        return KeyValues.start(frames.new_zeros(len(frames), heads, 0, frames.shape[2] // heads))

    def mix(self, mixed: Tensor, query: Tensor, state: KeyValues) -> Tensor:
        """Return (B, H, T, d): (1 - gate) times ``mixed``, plus gate times the output of the memory."""
        if not state.key.shape[2]:
            return mixed
        query = nn.functional.normalize(query, dim=-1)
        near = (query @ state.key.transpose(-1, -2)).masked_fill(~state.valid[:, None, None], -torch.inf)
        score, index = near.topk(min(self.neighbours, near.shape[-1]), dim=-1)
        known = score > -torch.inf
        score = score.masked_fill(~known, 0.0) * self.log_sharpness.exp()[:, None, None]
        score = score.masked_fill(~known, torch.finfo(score.dtype).min)
        index = index.flatten(2)[..., None].expand(-1, -1, -1, state.value.shape[-1])
        values = state.value.gather(2, index).unflatten(2, score.shape[2:])  # (B, H, T, k, d)
        read = (score.softmax(dim=-1)[..., None, :] @ values)[..., 0, :]
        gate = self.gate.sigmoid()[:, None, None] * known.any(dim=-1)[..., None]
        return (1 - gate) * mixed + gate * read

    def update(self, state: KeyValues, chunk: LayerChunk) -> tuple[KeyValues, dict[str, Tensor]]:
        """Append the chunk's keys and values, and drop the oldest."""
        key = nn.functional.normalize(chunk.key.detach(), dim=-1)
        return state.then(key, chunk.value.detach(), chunk.valid).last(self.length), {}

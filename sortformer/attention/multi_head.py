"""Multi-head self-attention: projections around a core, with positions and a memory."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from sortformer.attention.build import build_core
from sortformer.attention.protocol import Context, LayerStep, RecurrentCore, add_losses
from sortformer.attention.softmax import expectation, masked, scores
from sortformer.config.attention import AttentionConfig
from sortformer.config.mechanisms import POSITIONS
from sortformer.config.memories import NoMemory
from sortformer.memory import LayerChunk, Recall, build_memory
from sortformer.position import Places, build_position

__all__ = ["AttentionState", "MultiHeadAttention"]


@dataclass(frozen=True, slots=True)
class AttentionState:
    """The state of a layer between chunks."""

    clock: Tensor  # (B,) how many frames each row has seen
    core: Any
    memory: Any


class MultiHeadAttention(nn.Module):
    """Self-attention with a valid combination of core, position and memory.

    The projections are the same in all combinations, so their weights can be copied from one to another.
    """

    def __init__(
        self, dim: int, heads: int, attention: AttentionConfig, *, depth: int = 0, qkv_bias: bool = True
    ) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim, dim, bias=qkv_bias)
        self.key = nn.Linear(dim, dim, bias=qkv_bias)
        self.value = nn.Linear(dim, dim, bias=qkv_bias)
        self.out = nn.Linear(dim, dim)
        self.position = build_position(attention, dim, heads, depth)
        self.core = build_core(attention.core, heads, dim // heads)
        self.memory = build_memory(attention.memory, dim, heads)
        self.how = POSITIONS[attention.position].how
        self.chunk_frames = None if isinstance(attention.memory, NoMemory) else attention.memory.chunk_frames
        self.recurrent = attention.core_carries

    def forward(self, x: Tensor, valid: Tensor, state: AttentionState | None = None) -> LayerStep:
        """Attend from a chunk ``x`` (B, T, D) to itself and to the past in ``state``; None: a whole recording.

        Frames that are not ``valid`` (B, T) are never attended to. With a memory, a whole recording is processed chunk
        by chunk. Losses are means over the valid frames of the batch, so padding does not change them.
        """
        step = self._whole(x, valid) if state is None else self._chunk(x, valid, state)
        frames = valid.sum().clamp(min=1)
        return replace(step, losses={name: loss / frames for name, loss in step.losses.items()})

    def _whole(self, x: Tensor, valid: Tensor) -> LayerStep:
        """Process a whole recording; losses are sums over its frames, here and in ``_chunk``."""
        if self.chunk_frames is None:
            x = x.masked_fill(~valid[..., None], 0.0)  # a weight of zero would not remove NaN
            places = Places.whole(x.shape[1], x.device)
            query, key, value = self._project(x, x, places)
            context, turned = self._context(query, places, valid), self.position.rotate(query, key, places)
            mixed = self.core(*turned, value, context)
            return LayerStep(self._merged(mixed), None, self._losses(turned[0], context))
        state, outs, losses = self.init_state(x), [], dict[str, Tensor]()
        for start in range(0, x.shape[1], self.chunk_frames):
            chunk = slice(start, start + self.chunk_frames)
            step = self._chunk(x[:, chunk], valid[:, chunk], state)
            state, losses = step.state, add_losses(losses, step.losses)
            outs.append(step.out)
        return LayerStep(torch.cat(outs, dim=1), state, losses)

    def init_state(self, x: Tensor) -> AttentionState:
        """Return the state before the first frame, for frames like ``x`` (B, T, D).

        Raises:
            ValueError: if neither the core nor the memory has a state.
        """
        if self.chunk_frames is None and not self.recurrent:
            raise ValueError("this attention has no memory, and its core no state: it needs whole recordings")
        core = None
        if self.recurrent and isinstance(self.core, RecurrentCore):
            core = self.core.init_state(self._heads(self.query, x[:, :0]))
        clock = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        return AttentionState(clock, core, self.memory.init_state(x))

    def _chunk(self, x: Tensor, valid: Tensor, state: AttentionState) -> LayerStep:
        x, frames = x.masked_fill(~valid[..., None], 0.0), x.shape[1]
        at = state.clock[:, None] + torch.arange(frames, device=x.device)
        recall = self.memory.recall(state.memory)
        places, everything, seen = Places(at, at), x, valid
        if recall is not None:
            places = Places(at, torch.cat((recall.at, at.to(recall.at.dtype)), dim=1))
            everything, seen = torch.cat((recall.frames, x), dim=1), torch.cat((recall.valid, valid), dim=1)
        query, key, value = self._project(x, everything, places)
        past = everything.shape[1] - frames
        context = self._context(query, places, seen, past)
        turned, core = self.position.rotate(query, key, places), state.core
        if self.recurrent and isinstance(self.core, RecurrentCore):
            mixed, core = self.core.step(*turned, value, context, core)
        else:
            mixed = self.core(*turned, value, context)
        mixed = self.memory.mix(mixed, query, state.memory)
        chunk = LayerChunk(
            x,
            valid,
            at,
            key[:, :, past:],
            value[:, :, past:],
            read=lambda old, there: self._read(x, old, there),
            usage=lambda past_frames: self._usage(x, valid, past_frames),
        )
        memory, losses = self.memory.update(state.memory, chunk)
        losses = add_losses(self._losses(turned[0], context), losses)
        return LayerStep(self._merged(mixed), AttentionState(state.clock + frames, core, memory), losses)

    def _losses(self, query: Tensor, context: Context) -> dict[str, Tensor]:
        return self.core.losses(query, context) if self.training else {}

    def _project(self, asking: Tensor, asked: Tensor, places: Places) -> tuple[Tensor, Tensor, Tensor]:
        """Return query (B, H, T, d), key and value (B, H, S, d)."""
        alike = asking is asked
        asking = self.position.embed(asking, places.query)
        asked = asking if alike else self.position.embed(asked, places.key)
        query, value = self._heads(self.query, asking), self._heads(self.value, asked)
        return query, query if self.core.shares_queries else self._heads(self.key, asked), value

    def _heads(self, layer: nn.Linear, x: Tensor) -> Tensor:
        return layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _merged(self, mixed: Tensor) -> Tensor:
        # Copied, since the memory layout differs between kernels, and an exported graph must not depend on it.
        return self.out(mixed.transpose(1, 2).clone(memory_format=torch.contiguous_format).flatten(2))

    def _context(self, query: Tensor, places: Places, valid: Tensor, past: int = 0) -> Context:
        codes = cache(lambda: self.position.codes(places))

        def bias(rows: slice, columns: Tensor | None) -> Tensor:
            part = places.part(rows, columns)
            return self.position.bias(query[:, :, rows], part, None if part.first is None else codes())

        def factor(rows: slice, columns: Tensor | None) -> Tensor:
            return self.position.factor(places.part(rows, columns))

        return Context(valid, past, bias if self.how == "add" else None, factor if self.how == "multiply" else None)

    def _read(self, x: Tensor, old: Tensor, valid: Tensor) -> Tensor:
        """Attend to old frames (B, n, D) without positions, and without gradient to queries and weights."""
        query = self._heads(self.query, x.detach()).detach()
        key, value = (
            nn.functional.linear(old, layer.weight.detach(), None if layer.bias is None else layer.bias.detach())
            .unflatten(-1, (self.heads, -1))
            .transpose(1, 2)
            for layer in (self.key, self.value)
        )
        return expectation(query, key, value, valid[:, None, None])

    @torch.no_grad()
    def _usage(self, x: Tensor, valid: Tensor, recall: Recall) -> Tensor:
        """Return the attention (B, M), without positions, that a chunk pays to the past when it also sees itself."""
        everything, seen = torch.cat((recall.frames, x), dim=1), torch.cat((recall.valid, valid), dim=1)
        query, key = self._heads(self.query, x), self._heads(self.key, everything)
        weights = masked(scores(query, key), seen[:, None, None]).softmax(dim=-1)
        return (weights * valid[:, None, :, None]).sum(dim=(1, 2))[:, : recall.frames.shape[1]]

"""The Compressive Transformer's memory: recent frames uncompressed, older ones compressed.

With the core 'favor' it is the Compressive Performer (Ragupathi et al., "Compressive Performers in Language
Modelling"), but for two things in its algorithm 1: only frames of the chunk are queries, not those of the memory, whose
outputs could not be added to them; and the rest of the block is that of other cores. FAVOR+'s own running sums already
cover the whole past, so the memory pays only if chunk and memory together are much longer than the number of features.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from sortformer.memory.compression import build_compression
from sortformer.memory.protocol import LayerChunk, Memory
from sortformer.memory.transformer_xl import Queue, empty_queue, pushed
from sortformer.precision import wide

__all__ = ["Compressive", "CompressiveState"]


@dataclass(frozen=True, slots=True)
class CompressiveState:
    """The remembered frames, oldest first: compressed, then recent ones."""

    compressed: Queue
    recent: Queue


class Compressive(Memory):
    """Rae et al., arXiv 1911.05507, section 3.

    Recent frames in excess of ``length`` are compressed in whole groups of ``ratio``, so up to ``ratio - 1`` more stay
    uncompressed, and the groups do not depend on how a stream is cut into chunks. The position of a compressed frame
    is the mean of its group, or with "most_used" its own. With a loss, the compression is trained by that only, as in
    the paper; without one, by the task, since compressed frames then keep their graph.
    """

    def __init__(self, dim: int, length: int, compressed: int, ratio: int, compression: str, loss: str) -> None:
        super().__init__()
        self.length = length
        self.compressed = compressed
        self.ratio = ratio if compressed else 1
        self.loss = loss
        self.compression = build_compression(compression, dim, ratio)
        self.measures_usage = compression == "most_used"
        self.decoder = nn.ConvTranspose1d(dim, dim, ratio, stride=ratio) if loss == "autoencoding" else None

    def init_state(self, frames: Tensor) -> CompressiveState:
        return CompressiveState(empty_queue(frames), empty_queue(frames))

    def recall(self, state: CompressiveState) -> Queue:
        """Return the compressed frames and the recent ones."""
        return state.compressed.then(state.recent)

    def update(self, state: CompressiveState, chunk: LayerChunk) -> tuple[CompressiveState, dict[str, Tensor]]:
        """Append the chunk, compress the oldest recent frames, and drop the oldest compressed ones."""
        recent, compressed = state.recent, state.compressed
        if self.measures_usage:
            given = chunk.usage(self.recall(state))[:, compressed.frames.shape[1] :]
            recent = replace(recent, usage=recent.usage + given)
        recent = pushed(recent, chunk)
        overflow = max(0, recent.frames.shape[1] - self.length) // self.ratio * self.ratio
        old, recent = recent.part(slice(0, overflow)), recent.part(slice(overflow, None))
        if not overflow or not self.compressed:
            return CompressiveState(compressed, recent), {}
        fresh = self._compressed(old)
        losses = self._losses(old, fresh, chunk) if self.training else {}
        if self.loss != "none":
            fresh = replace(fresh, frames=fresh.frames.detach())
        return CompressiveState(compressed.then(fresh).last(self.compressed), recent), losses

    def _compressed(self, old: Queue) -> Queue:
        at, valid = self.compression.places(old.at, old.valid, old.usage)
        return Queue(self.compression(old.frames, old.valid, old.usage), valid, at, old.usage.new_zeros(at.shape))

    def _losses(self, old: Queue, fresh: Queue, chunk: LayerChunk) -> dict[str, Tensor]:
        """Return the loss of the compression, a sum over valid frames; none with ``loss`` "none" or without parameters.

        The sum is over the compressed frames in the auto-encoding loss, over those of the chunk in the other.
        """
        if self.loss == "none" or not any(True for _ in self.parameters()):
            return {}
        # Padding displaces frames too: a group counts only if valid frames of its own recording would displace it.
        end = torch.where(chunk.valid, chunk.at, -1).amax(dim=1, keepdim=True) + 1
        left = old.at[:, self.ratio - 1 :: self.ratio] < end - self.length
        before, after = old.valid & left.repeat_interleave(self.ratio, dim=1), fresh.valid & left
        if self.decoder is not None:  # section 3.2, "auto-encoding loss"
            rebuilt = self.decoder(fresh.frames.transpose(1, 2)).transpose(1, 2)
            return {"memory_autoencoding": _over(before, (rebuilt - old.frames).square())}
        read_before, read_after = chunk.read(old.frames, before), chunk.read(fresh.frames, after)
        heard = chunk.valid & before.any(dim=1, keepdim=True)
        return {"memory_attention": _over(heard, (read_after - read_before).square().mean(dim=1))}


def _over(valid: Tensor, error: Tensor) -> Tensor:
    """Return the sum over the ``valid`` (B, n) frames of the means of their errors (B, n, D)."""
    return (wide(error).mean(dim=2) * valid).sum()

"""Transformer-XL memory: the layer's inputs in the last frames, without gradient."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sortformer.memory.protocol import LayerChunk, Memory, Recall
from sortformer.precision import finest

__all__ = ["Queue", "TransformerXL", "empty_queue", "pushed"]


@dataclass(frozen=True, slots=True)
class Queue(Recall):
    """The last frames, oldest first."""

    usage: Tensor  # (B, M) the attention that each has received so far

    def part(self, where: slice) -> "Queue":
        """Return the frames of a slice."""
        return Queue(self.frames[:, where], self.valid[:, where], self.at[:, where], self.usage[:, where])

    def last(self, frames: int) -> "Queue":
        """Return the last ``frames``."""
        return self.part(slice(max(0, self.frames.shape[1] - frames), None))

    def then(self, other: "Queue") -> "Queue":
        """Return these frames with others appended."""
        return Queue(
            torch.cat((self.frames, other.frames), dim=1),
            torch.cat((self.valid, other.valid), dim=1),
            torch.cat((self.at, other.at), dim=1),
            torch.cat((self.usage, other.usage), dim=1),
        )


class TransformerXL(Memory):
    """Dai et al., arXiv 1901.02860, section 3.2: a chunk also attends to the ``length`` frames before it."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def init_state(self, frames: Tensor) -> Queue:
        return empty_queue(frames)

    def recall(self, state: Queue) -> Queue:
        return state

    def update(self, state: Queue, chunk: LayerChunk) -> tuple[Queue, dict[str, Tensor]]:
        """Append the chunk and drop the oldest frames."""
        return pushed(state, chunk).last(self.length), {}


def empty_queue(frames: Tensor) -> Queue:
    """Return an empty queue for frames of the shape (but for T) and type of ``frames`` (B, T, D)."""
    rows = frames.shape[0]
    return Queue(
        frames.new_zeros(rows, 0, frames.shape[2]),
        torch.zeros(rows, 0, dtype=torch.bool, device=frames.device),
        torch.zeros(rows, 0, dtype=finest(frames.device), device=frames.device),
        frames.new_zeros(rows, 0),
    )


def pushed(queue: Queue, chunk: LayerChunk) -> Queue:
    """Return the queue with a chunk appended, without gradient."""
    at = chunk.at.to(queue.at.dtype)
    return queue.then(Queue(chunk.frames.detach(), chunk.valid, at, queue.usage.new_zeros(at.shape)))

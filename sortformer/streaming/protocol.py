"""The interface of a stream's memory: an initial state, a step, and how to forget a speaker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

__all__ = ["Chunk", "StreamMemory", "together"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """New frames of B streams; a row of length 0 is skipped in this step."""

    emb: Tensor  # (B, T, D) subsampled frames: left context, chunk, right context, padding
    left: Tensor  # (B,) int64: frames of left context
    length: Tensor  # (B,) frames of the chunk
    right: Tensor  # (B,) frames of right context


def together(chunks: Sequence[Chunk]) -> Chunk:
    """Return the chunks of single streams as the rows of one."""
    emb = nn.utils.rnn.pad_sequence([chunk.emb[0] for chunk in chunks], batch_first=True)
    return Chunk(emb, *(torch.cat([getattr(chunk, name) for chunk in chunks]) for name in ("left", "length", "right")))


class StreamMemory(Protocol):
    """A stream's memory of the past, as pure functions of an explicit state.

    A state is a frozen dataclass of tensors, whose first axis is the streams; states of one shape can be concatenated
    and advanced as a batch (``streaming.rows``).
    """

    def start(self, rows: int = 1) -> Any:
        """Return the state of ``rows`` streams before the first frame."""
        ...

    def step(self, state: Any, chunk: Chunk) -> tuple[Any, Tensor]:
        """Return the state after a chunk, and the chunk's final probabilities (B, t, S).

        Shorter rows end in zeros.
        """
        ...

    def forget(self, state: Any, channel: int) -> Any:
        """Return the state without the speaker of an output channel; those who arrived later move up by one.

        Raises:
            InputError: if the state does not separate speakers.
        """
        ...

"""Streams through models whose layers carry a state: each chunk passes each layer once."""

from dataclasses import dataclass, replace

from torch import Tensor

from sortformer.config.carrying import check_carries
from sortformer.config.stream import StreamConfig
from sortformer.errors import ConfigError, InputError
from sortformer.model import ModelState, Sortformer
from sortformer.streaming.protocol import Chunk

__all__ = ["LayerMemory"]


@dataclass(frozen=True, slots=True)
class LayerMemory:
    """A stream's memory is the states of the layers (memories, running sums, arrivals); see ``Sortformer.step``.

    No frame is processed twice and there is no look-ahead: a chunk is final at once.
    """

    model: Sortformer
    config: StreamConfig

    def __post_init__(self) -> None:
        check_carries(self.model.config)
        config = self.config
        if config != replace(StreamConfig.by_memory(config.chunk_frames), max_speakers=config.max_speakers):
            raise ConfigError(
                "this model keeps its state in its layers, so it supports no speaker cache, FIFO or context: "
                "stream with one of its presets, or StreamConfig.by_memory(chunk_frames)"
            )

    def start(self, rows: int = 1) -> ModelState:
        return self.model.start(rows)

    def step(self, state: ModelState, chunk: Chunk) -> tuple[ModelState, Tensor]:
        """Return the state after a chunk of the same length in every row, and its probabilities (B, t, S)."""
        if bool((chunk.length != chunk.emb.shape[1]).any()):
            raise ValueError("streams with state in their layers can be batched only with chunks of the same length")
        output, state = self.model.step(chunk.emb, state)
        return state, output.probs

    def forget(self, state: ModelState, channel: int) -> ModelState:
        """Refuse: the states of the layers do not separate speakers."""
        del state, channel
        raise InputError(
            "this model keeps its state in its layers, from which one speaker cannot be removed: "
            "reset() the stream, or use a model with a speaker cache"
        )

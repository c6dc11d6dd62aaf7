"""Choice of a stream's memory: the states of the model's layers if they carry any, else a speaker cache."""

from sortformer.config.carrying import carries
from sortformer.config.stream import StreamConfig
from sortformer.model import Sortformer
from sortformer.streaming.layer_memory import LayerMemory
from sortformer.streaming.protocol import StreamMemory
from sortformer.streaming.step import SpeakerCache

__all__ = ["stream_memory"]


def stream_memory(model: Sortformer, config: StreamConfig) -> StreamMemory:
    """Return the memory of a model's streams.

    Raises:
        ConfigError: if the model cannot stream, or the configuration is for another kind of memory.
    """
    return LayerMemory(model, config) if carries(model.config) else SpeakerCache(model, config)

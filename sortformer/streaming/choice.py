"""Which memory a model streams with: that of its layers if they carry anything, or else a speaker cache."""

from sortformer.config.carrying import carries
from sortformer.config.stream import StreamConfig
from sortformer.model import Sortformer
from sortformer.streaming.layer_memory import LayerMemory
from sortformer.streaming.protocol import StreamMemory
from sortformer.streaming.step import SpeakerCache

__all__ = ["stream_memory"]


def stream_memory(model: Sortformer, config: StreamConfig) -> StreamMemory:
    """Return how a model remembers the past of a stream.

    Raises:
        ConfigError: if it cannot, or the configuration is for another kind of memory.
    """
    return LayerMemory(model, config) if carries(model.config) else SpeakerCache(model, config)

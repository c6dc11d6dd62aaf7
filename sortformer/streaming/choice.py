"""Choice of a stream's memory: the states of the model's layers if they carry any, else a speaker cache."""

from sortformer.config.carrying import carries
from sortformer.config.stream import StreamConfig
from sortformer.errors import ConfigError, InputError
from sortformer.model import Sortformer, check_model
from sortformer.streaming.layer_memory import LayerMemory
from sortformer.streaming.protocol import StreamMemory
from sortformer.streaming.step import SpeakerCache

__all__ = ["stream_memory"]


def stream_memory(model: Sortformer, config: StreamConfig) -> StreamMemory:
    """Return the memory of a model's streams.

    Raises:
        ConfigError: if the model cannot stream, or the configuration is for another kind of memory.
        InputError: if the model is not a ``Sortformer`` in evaluation mode, or the configuration no ``StreamConfig``.
    """
    check_model(model)
    if not isinstance(config, StreamConfig):
        raise InputError(f"a stream needs a StreamConfig, such as one of diarizer.presets, got {config!r}")
    if model.config.features.normalize == "per_feature":
        raise ConfigError(
            "this model normalises its features over the whole recording, which a stream cannot do: "
            "use a model with features.normalize = 'none' or 'fixed'"
        )
    return LayerMemory(model, config) if carries(model.config) else SpeakerCache(model, config)

"""Named settings, published or chosen with a model: how it streams, and how its output becomes turns."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from sortformer.config.carrying import carries, check_carries, memory_chunk_frames, memory_obstacle
from sortformer.config.model import ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import STREAM_PRESETS, StreamConfig
from sortformer.errors import ConfigError, InputError

__all__ = [
    "POSTPROCESS_PRESETS",
    "as_postprocess",
    "model_preset",
    "model_presets",
    "nearest_preset",
    "streams_files",
]

POSTPROCESS_PRESETS: Mapping[str, PostprocessConfig] = MappingProxyType(
    {
        "none": PostprocessConfig(),
        # NVIDIA, tuned by them for each generation and corpus (NeMo's examples/speaker_tasks/diarization).
        "v1-callhome": PostprocessConfig(0.53, 0.49, pad_on_s=0.23, pad_off_s=0.01, min_on_s=0.42, min_off_s=0.34),
        "v1-dihard3": PostprocessConfig(0.64, 0.74, pad_on_s=0.06, pad_off_s=0.0, min_on_s=0.10, min_off_s=0.15),
        "v2-callhome": PostprocessConfig(
            0.641, 0.561, pad_on_s=0.229, pad_off_s=0.079, min_on_s=0.511, min_off_s=0.296
        ),
        "v2-dihard3": PostprocessConfig(0.56, 1.0, pad_on_s=0.063, pad_off_s=0.002, min_on_s=0.007, min_off_s=0.151),
    }
)
"""Named post-processing; "none" is a plain threshold of one half, with which Nemotron 3 and v2.1 are published."""

# Where the chunk length affects only latency and the work per step.
_ANY_CHUNK_FRAMES = {"30s": 375, "10s": 125, "1s": 12, "0.3s": 4}


def as_postprocess(wanted: PostprocessConfig | str) -> PostprocessConfig:
    """Return a post-processing config, which may be given by name.

    Raises:
        ConfigError: if the name is unknown; the message lists the known ones.
        InputError: if it is neither a config nor a name.
    """
    if isinstance(wanted, str):
        if wanted not in POSTPROCESS_PRESETS:
            raise ConfigError(f"there is no post-processing '{wanted}'; known: {', '.join(POSTPROCESS_PRESETS)}")
        return POSTPROCESS_PRESETS[wanted]
    if not isinstance(wanted, PostprocessConfig):
        raise InputError(f"postprocess must be a PostprocessConfig, or a name, got {type(wanted).__name__}")
    return wanted


def model_presets(model: ModelConfig) -> dict[str, StreamConfig]:
    """Return a model's streaming configs by latency ("30.4s", "10s", ...), the longest first, which is best for files.

    A model whose layers have memories uses the chunks that these were trained with; one whose cores alone carry a state
    gives the same result with chunks of any length. All others use a speaker cache, which chooses its frames by the
    settings that the model was published with (``ModelConfig.speaker_cache``). Empty if the features depend on the
    whole recording, as in NVIDIA's v1: such a model supports only "offline".
    """
    if carries(model):
        return {} if memory_obstacle(model) else _memory_presets(model)
    if model.features.whole:
        return {}
    family = ""  # prefix of the latency in the name of a preset
    if model.labelling == "nemo":
        family = "nemotron3" if model.encoder.learned_silence else "nvidia"
    found = dict[str, StreamConfig]()
    for name, config in STREAM_PRESETS.items():
        prefix, _, latency = name.rpartition("-")
        if prefix == family:
            if model.speaker_cache is not None:
                cache = replace(model.speaker_cache, frames=config.speaker_cache.frames)
                config = replace(config, speaker_cache=cache)
            found[latency] = config
    return found


def model_preset(model: ModelConfig, name: str) -> StreamConfig:
    """Return the streaming config of a model for the latency called ``name``.

    Raises:
        ConfigError: if the model cannot stream, or the name is unknown; the message lists the known ones.
    """
    presets = _presets(model)
    if not isinstance(name, str) or name not in presets:
        known = f"known: {', '.join(presets)}; offline is for recordings"
        raise ConfigError(f"this model has no streaming preset '{name}'; {known}")
    return presets[name]


def streams_files(model: ModelConfig) -> bool:
    """Return whether recordings are better streamed through a model than processed as a whole.

    NVIDIA's streaming models are published for that: they never saw more at once than the longest preset shows them.
    """
    return model.labelling == "nemo" and bool(model_presets(model))


def nearest_preset(model: ModelConfig, latency_s: float) -> str:
    """Return the name of the model's preset whose latency is nearest to ``latency_s``.

    Raises:
        ConfigError: if the model cannot stream.
    """
    presets = _presets(model)
    return min(presets, key=lambda name: abs(presets[name].latency_s - latency_s))


def _memory_presets(model: ModelConfig) -> dict[str, StreamConfig]:
    frames = memory_chunk_frames(model)
    if frames is None:
        return {name: StreamConfig.by_memory(frames) for name, frames in _ANY_CHUNK_FRAMES.items()}
    config = StreamConfig.by_memory(frames)
    return {f"{config.latency_s:g}s": config}


def _presets(model: ModelConfig) -> dict[str, StreamConfig]:
    if carries(model):
        check_carries(model)
    presets = model_presets(model)
    if not presets:
        raise ConfigError("this model needs the whole recording and cannot stream: use another model")
    return presets

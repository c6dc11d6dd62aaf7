"""NVIDIA's Nemotron 3 Diarization as published on Hugging Face: ``config.json`` and ``model.safetensors``."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sortformer.checkpoint.cache_settings import read_speaker_cache
from sortformer.checkpoint.contents import Checkpoint, build
from sortformer.checkpoint.files import read_weights
from sortformer.checkpoint.keys import KeyTable, of_blocks
from sortformer.checkpoint.licences import licence_of
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import STREAM_PRESETS
from sortformer.errors import ConfigError, InputError

__all__ = ["MODEL_TYPE", "key_table", "model_config", "read_nemotron"]

MODEL_TYPE = "nemotron3_diarization"

_PARTS = {
    "silence_embeds": "encoder.silence",
    "model.audio_tower.embedder.projection": "encoder.pre_encode.out",
    "model.audio_tower.input_layer_norm": "encoder.input_norm",
    "model.audio_tower.layer_norm": "encoder.norm",
    "model.proj": "head.input",
    "model.upsampler.conv": "head.upsampling.conv",
    "classifier.dense": "head.hidden",
    "classifier.out_proj": "head.out",
}

_BLOCK = {
    "layer_norm1": "attention_norm",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.out",
    "layer_norm2": "feed_forward_norm",
    "mlp.fc1": "expand",
    "mlp.fc2": "contract",
}

# Settings with one supported value; it is also transformers' default for a setting that is left out.
_FIXED = {
    "audio_config.hidden_act": "gelu",
    "audio_config.subsampling_factor": 8,
    "audio_config.rope_parameters.rope_type": "default",
    "audio_config.rope_parameters.rope_theta": 10000.0,
    "audio_config.rope_parameters.partial_rotary_factor": 1.0,
    # Names from before version 5, which transformers moves into rope_parameters when it reads a config.
    "audio_config.rope_scaling": None,
    "audio_config.rope_theta": 10000.0,
    "audio_config.partial_rotary_factor": 1.0,
    "streaming_config.subsampling_factor": 8,
    # Chunk sizes of streams and of whole recordings: those of our presets.
    "chunk_length": 340,
    "chunk_left_context": 0,
    "chunk_right_context": 40,
    "fifo_length": 40,
    "speaker_cache_update_period": 300,
    "streaming_config.fifo_length": 264,
    "streaming_config.speaker_cache_update_period": 222,
    "streaming_config.speaker_cache_length": 264,
}

# Sizes, with transformers' defaults: those of the published model.
_SIZES = {
    "audio_config.hidden_size": 512,
    "audio_config.intermediate_size": 2048,
    "audio_config.num_hidden_layers": 31,
    "audio_config.num_attention_heads": 8,
    "audio_config.num_mel_bins": 128,
    "head_config.hidden_size": 192,
    "head_config.num_speakers": 8,
    "head_config.audio_hidden_size": 512,
    "head_config.subsampling_factor": 8,
}

_SPEAKER_CACHE = {
    "speaker_cache_silence_frames_per_speaker": "silence_frames",
    "prediction_score_threshold": "probability_floor",
    "latest_frames_score_boost": "newcomer_bonus",
    "strong_boost_rate": "strong_share",
    "weak_boost_rate": "weak_share",
    "min_positive_scores_rate": "min_positive_share",
}

_SECTIONS = {"audio_config", "audio_config.rope_parameters", "head_config", "streaming_config"}

_KNOWN = {
    *_FIXED,
    *_SIZES,
    *(f"streaming_config.{name}" for name in _SPEAKER_CACHE),
    *("audio_config.num_key_value_heads", "streaming_config.num_speakers"),
}

# Settings of any section that do not change the output of a trained network.
_FREE = {
    *("model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "_name_or_path", "return_dict"),
    *("initializer_range", "attention_dropout", "max_position_embeddings", "id2label", "label2id", "problem_type"),
    *("chunk_size_feed_forward", "use_cache", "output_hidden_states", "output_attentions"),
}


def read_nemotron(folder: Path, values: Mapping[str, Any], name: str) -> Checkpoint:
    """Read the model of ``folder``, whose ``config.json`` holds ``values``; ``name`` is its published name.

    Raises:
        InputError: if a file is damaged, or the model has a part or a setting that is not supported.
    """
    try:
        config = model_config(values)
    except ConfigError as error:
        raise InputError(f"{folder / 'config.json'} describes a model that is not supported: {error}") from error
    path = folder / "model.safetensors"
    model = build(path, config, read_weights(path), key_table(config))
    return Checkpoint(model, PostprocessConfig(), licence_of(name, config))


def key_table(config: ModelConfig) -> KeyTable:
    """Return transformers' names for a model with the blocks of ``config``."""
    blocks = of_blocks(config.encoder.layers, "model.audio_tower.layers", "encoder.blocks", _BLOCK)
    return KeyTable(_PARTS | blocks, dropped={})


def model_config(values: Mapping[str, Any]) -> ModelConfig:
    """Return the config of our model that is equivalent to transformers' with the config ``values``.

    Raises:
        ConfigError: if a size or a setting is not supported, or a setting is unknown.
    """
    for name, value in _settings(values):
        off = value is None or (value is False and name not in _SECTIONS)
        if not off and name not in _KNOWN and name.rpartition(".")[2] not in _FREE:
            raise ConfigError(f"{name} (here {value!r}) is a setting that this version does not support")
    for name, expected in _FIXED.items():
        found = _get(values, name, expected)
        if found != expected:
            raise ConfigError(f"{name} is {found!r}, but only {expected!r} is supported")
    sizes = {name: _get(values, name, default) for name, default in _SIZES.items()}
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise ConfigError(f"{name} must be a whole number, but is {size!r}")
    dim, heads = sizes["audio_config.hidden_size"], sizes["audio_config.num_attention_heads"]
    num_slots = sizes["head_config.num_speakers"]
    for name, fitting in (
        ("audio_config.num_key_value_heads", heads),
        ("head_config.audio_hidden_size", dim),
        ("head_config.subsampling_factor", _FIXED["audio_config.subsampling_factor"]),
        ("streaming_config.num_speakers", num_slots),
    ):
        found = _get(values, name, fitting)
        if found != fitting:
            raise ConfigError(f"{name} must be {fitting} to match the other parts, but is {found!r}")
    return ModelConfig(
        FeatureConfig(num_mels=sizes["audio_config.num_mel_bins"]),
        EncoderConfig(
            kind="transformer",
            subsampling="stacking",
            dim=dim,
            layers=sizes["audio_config.num_hidden_layers"],
            heads=heads,
            ff_dim=sizes["audio_config.intermediate_size"],
            position="rope",
            learned_silence=True,
            dropout=0.0,
        ),
        HeadConfig(
            num_slots=num_slots,
            dim=sizes["head_config.hidden_size"],
            layers=0,
            heads=1,
            position="none",
            permutation="none",
            estimate_layers=(),
            upsampling=8,
            dropout=0.0,
        ),
        labelling="nemo",
        speaker_cache=read_speaker_cache(
            _get(values, "streaming_config", {}),
            "streaming_config",
            _SPEAKER_CACHE,
            STREAM_PRESETS["nemotron3-30.4s"].speaker_cache,
            num_slots,
        ),
    )


def _settings(values: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of all sections by their dotted names."""
    for key, value in values.items():
        name = f"{place}{key}"
        if name in _SECTIONS and isinstance(value, Mapping):
            yield from _settings(value, f"{name}.")
        else:
            yield name, value


def _get(values: Mapping[str, Any], name: str, default: Any) -> Any:
    """Return the value at a dotted name, or the default where it is absent or null."""
    found: Any = values
    for key in name.split("."):
        if not isinstance(found, Mapping) or key not in found:
            return default
        found = found[key]
    return default if found is None else found

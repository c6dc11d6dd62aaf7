"""NVIDIA's Nemotron 3 Diarization as Hugging Face publishes it: ``config.json`` and ``model.safetensors``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sortformer.checkpoint.contents import Checkpoint, build
from sortformer.checkpoint.files import read_weights
from sortformer.checkpoint.keys import KeyTable
from sortformer.checkpoint.licences import licence_of
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
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

_FIXED_AUDIO = {
    "hidden_act": "gelu",
    "subsampling_factor": 8,
    "rope_parameters.rope_type": "default",
    "rope_parameters.rope_theta": 10000.0,
    "rope_parameters.partial_rotary_factor": 1.0,
}


def read_nemotron(folder: Path, values: Mapping[str, Any], name: str) -> Checkpoint:
    """Read the model of ``folder``, whose ``config.json`` holds ``values``; ``name`` is what it is published as.

    Raises:
        InputError: if a file is damaged, or the model has a part or a setting that is not supported.
    """
    try:
        config = model_config(values)
    except ConfigError as error:
        raise InputError(f"{folder / 'config.json'} describes a model that cannot be used here: {error}") from error
    path = folder / "model.safetensors"
    model = build(path, config, read_weights(path), key_table(config))
    return Checkpoint(model, PostprocessConfig(), licence_of(name, config))


def key_table(config: ModelConfig) -> KeyTable:
    """Return the names that transformers gives to the parts of a model with the blocks of ``config``."""
    parts = dict(_PARTS)
    for block in range(config.encoder.layers):
        for theirs, ours in _BLOCK.items():
            parts[f"model.audio_tower.layers.{block}.{theirs}"] = f"encoder.blocks.{block}.{ours}"
    return KeyTable(parts, dropped={})


def model_config(values: Mapping[str, Any]) -> ModelConfig:
    """Return the config of our model that computes what transformers' of ``values`` does.

    Raises:
        ConfigError: if a size is missing or a setting is not supported.
    """
    for name, expected in _FIXED_AUDIO.items():
        found = _get(values, f"audio_config.{name}", expected)
        if found != expected:
            raise ConfigError(f"audio_config.{name} is {found!r}, and only {expected!r} is supported")
    dim, heads = _integer(values, "audio_config.hidden_size"), _integer(values, "audio_config.num_attention_heads")
    for name, expected in (("audio_config.num_key_value_heads", heads), ("head_config.audio_hidden_size", dim)):
        if _get(values, name, expected) != expected:
            raise ConfigError(f"{name} should be {expected} to fit the other parts, but is {_get(values, name)!r}")
    return ModelConfig(
        FeatureConfig(num_mels=_integer(values, "audio_config.num_mel_bins")),
        EncoderConfig(
            kind="transformer",
            subsampling="stacking",
            dim=dim,
            layers=_integer(values, "audio_config.num_hidden_layers"),
            heads=heads,
            ff_dim=_integer(values, "audio_config.intermediate_size"),
            position="rope",
            learned_silence=True,
            dropout=float(_get(values, "audio_config.attention_dropout", 0.0)),
        ),
        HeadConfig(
            num_slots=_integer(values, "head_config.num_speakers"),
            dim=_integer(values, "head_config.hidden_size"),
            layers=0,
            heads=1,
            position="none",
            permutation="none",
            estimate_layers=(),
            upsampling=_integer(values, "head_config.subsampling_factor"),  # pyright: ignore[reportArgumentType]
            dropout=0.0,
        ),
        labelling="nemo",
    )


def _get(values: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """Return the value at a dotted name, or the default where it is absent."""
    found: Any = values
    for key in name.split("."):
        if not isinstance(found, Mapping) or key not in found:
            return default
        found = found[key]
    return found


def _integer(values: Mapping[str, Any], name: str) -> int:
    value = _get(values, name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} must be a whole number, but is {value!r}")
    return value

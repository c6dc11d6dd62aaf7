"""From NeMo's config of a Sortformer (``model_config.yaml``) to ours.

Only the settings of the network and of its speaker cache are read, and every setting that could change the output is
either supported or refused; spec: the published training configurations of v1 and v2, and the signature of NeMo's
``SortformerModules``. Chunk sizes of streams come from our presets, as they do in model cards and NeMo's scripts.
"""

import re
from collections.abc import Mapping
from typing import Any

from sortformer.checkpoint.cache_settings import read_speaker_cache
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.stream import SpeakerCacheConfig
from sortformer.errors import ConfigError

__all__ = ["SPEAKER_CACHE", "TARGET", "model_config"]

TARGET = "nemo.collections.asr.models.sortformer_diar_models.SortformerEncLabelModel"

SPEAKER_CACHE = {
    "spkcache_sil_frames_per_spk": "silence_frames",
    "pred_score_threshold": "probability_floor",
    "scores_boost_latest": "newcomer_bonus",
    "sil_threshold": "silence_threshold",
    "strong_boost_rate": "strong_share",
    "weak_boost_rate": "weak_share",
    "min_pos_scores_rate": "min_positive_share",
}
"""The keys of ``sortformer_modules`` for the fields of ``SpeakerCacheConfig``; their defaults are the same."""

# Settings with one supported value, of the whole model and of its sections. Unless _DEFAULTS has another, it is also
# NeMo's default for a setting that is left out.
_FIXED_WHOLE: dict[str, Any] = {"eps": 1e-3, "output_subsampling_factor": 8}
_FIXED: dict[str, dict[str, Any]] = {
    "preprocessor": {
        "sample_rate": 16000,
        "window_size": 0.025,
        "window_stride": 0.01,
        "n_window_size": 400,
        "n_window_stride": 160,
        "window": "hann",
        "n_fft": 512,
        "frame_splicing": 1,
        "preemph": 0.97,
        "lowfreq": 0,
        "highfreq": 8000,
        "log": True,
        "log_zero_guard_type": "add",
        "log_zero_guard_value": 2**-24,
        "mag_power": 2.0,
        "pad_value": 0,
        "exact_pad": False,
        "mel_norm": "slaney",
    },
    "encoder": {
        "feat_out": -1,
        "subsampling": "dw_striding",
        "subsampling_factor": 8,
        "causal_downsampling": False,
        "reduction_factor": 1,
        "global_tokens_spacing": 1,
        "self_attention_model": "rel_pos",
        "att_context_size": [-1, -1],
        "att_context_style": "regular",
        "untie_biases": True,
        "conv_norm_type": "batch_norm",
        "conv_context_style": "regular",
        "use_bias": True,
    },
    "transformer_encoder": {"hidden_act": "relu", "pre_ln": False, "mask_future": False},
    "sortformer_modules": {
        "subsampling_factor": 8,
        "upsample_factor": 1,
        "use_learnable_sil_emb": False,
        "max_index": 99999,
    },
}

# NeMo's defaults, of settings whose supported value differs, and of settings that we read.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "preprocessor": {"window_size": 0.02},
    "encoder": {"subsampling": "striding", "subsampling_factor": 4, "dropout": 0.1},
    "sortformer_modules": {"dropout_rate": 0.5},
}

# Those of the fixed settings that NeMo derives from others if they are null; for the rest, null is off, or an error.
_NULLABLE = {
    *("window_size", "window_stride", "n_window_size", "n_window_stride", "n_fft", "highfreq"),
    *("att_context_size", "conv_context_size"),
}

# Settings that are read below, or that do not change the output of a trained network.
_FREE: dict[str, set[str]] = {
    "preprocessor": {
        *("_target_", "normalize", "features", "dither", "pad_to", "nb_augmentation_prob", "nb_max_freq", "rng"),
    },
    "encoder": {
        *("_target_", "feat_in", "n_layers", "d_model", "subsampling_conv_channels", "ff_expansion_factor", "n_heads"),
        *("subsampling_conv_chunking_factor", "conv_context_size"),
        *("xscaling", "pos_emb_max_len", "conv_kernel_size", "dropout", "dropout_pre_encoder", "dropout_emb"),
        *("dropout_att", "stochastic_depth_drop_prob", "stochastic_depth_mode", "stochastic_depth_start_layer"),
        *("use_pytorch_sdpa", "use_pytorch_sdpa_backends", "sync_max_audio_length"),
    },
    "transformer_encoder": {
        *("_target_", "num_layers", "hidden_size", "inner_size", "num_attention_heads", "attn_score_dropout"),
        *("attn_layer_dropout", "ffn_dropout", "pre_ln_final_layer_norm"),
    },
    "sortformer_modules": {
        *("_target_", "num_spks", "dropout_rate", "fc_d_model", "tf_d_model", *SPEAKER_CACHE),
        # Chunk sizes of streams, which come from presets (the fifth is an older name of the fourth), and training.
        *("chunk_len", "fifo_len", "spkcache_len", "spkcache_update_period", "spkcache_refresh_rate"),
        *("chunk_left_context", "chunk_right_context"),
        *("scores_add_rnd", "causal_attn_rate", "causal_attn_rc"),
    },
}

_CLASSES = {
    "preprocessor": "AudioToMelSpectrogramPreprocessor",
    "encoder": "ConformerEncoder",
    "transformer_encoder": "TransformerEncoder",
    "sortformer_modules": "SortformerModules",
}

_NORMALIZE = {"per_feature": "per_feature", "NA": "none", None: "none"}


def model_config(values: Mapping[str, Any]) -> ModelConfig:
    """Return the config of our model that is equivalent to NeMo's with the config ``values``.

    Raises:
        ConfigError: if it is not a Sortformer, or has a part or a setting that is not supported.
    """
    target = str(values.get("target", TARGET))
    if target.rpartition(".")[2] != TARGET.rpartition(".")[2]:
        raise ConfigError(f"it describes NeMo's '{target.rpartition('.')[2]}', which is not a Sortformer")
    if _flag(_resolve(values.get("high_resolution"), values), "high_resolution"):
        raise ConfigError(
            "high_resolution is on, as in Nemotron 3, which is supported only as published for transformers: give its "
            "Hugging Face id, or a folder with its config.json and model.safetensors"
        )
    for key, only in _FIXED_WHOLE.items():
        _check_fixed(key, _resolve(values.get(key, only), values), only)
    preprocessor, encoder = _section(values, "preprocessor"), _section(values, "encoder")
    transformer, modules = _section(values, "transformer_encoder"), _section(values, "sortformer_modules")
    normalize = preprocessor.get("normalize", "per_feature")
    if not isinstance(normalize, str | None) or normalize not in _NORMALIZE:
        raise ConfigError(f"preprocessor.normalize is {normalize!r}, which is not supported")
    dim, head_dim, num_mels = (
        _integer(encoder, "encoder.d_model"),
        _integer(transformer, "transformer_encoder.hidden_size"),
        _integer(preprocessor, "preprocessor.features"),
    )
    channels = _integer(encoder, "encoder.subsampling_conv_channels")
    num_slots = _integer(modules, "sortformer_modules.num_spks")
    conv_kernel = _integer(encoder, "encoder.conv_kernel_size")
    _check_fixed("encoder.conv_context_size", encoder.get("conv_context_size"), [(conv_kernel - 1) // 2] * 2)
    for section, name, size in (
        (encoder, "encoder.feat_in", num_mels),
        (modules, "sortformer_modules.fc_d_model", dim),
        (modules, "sortformer_modules.tf_d_model", head_dim),
    ):
        if _integer(section, name) != size:
            raise ConfigError(f"{name} must be {size} to match the other parts, but is {_integer(section, name)}")
    return ModelConfig(
        FeatureConfig(
            num_mels=num_mels,
            normalize=_NORMALIZE[normalize],  # pyright: ignore[reportArgumentType]
            # NeMo's forward pass scales the wave unless the model streams.
            gain="none" if _flag(_resolve(values.get("streaming_mode"), values), "streaming_mode") else "peak",
        ),
        EncoderConfig(
            kind="conformer",
            subsampling="dw_striding",
            subsampling_channels=dim if channels == -1 else channels,
            dim=dim,
            layers=_integer(encoder, "encoder.n_layers"),
            heads=_integer(encoder, "encoder.n_heads"),
            ff_dim=dim * _integer(encoder, "encoder.ff_expansion_factor"),
            conv_kernel=conv_kernel,
            conv_norm="batch",
            position="xl",
            input_scale=_flag(encoder.get("xscaling", True), "encoder.xscaling"),
            dropout=_probability(encoder, "encoder.dropout"),
        ),
        HeadConfig(
            num_slots=num_slots,
            dim=head_dim,
            layers=_integer(transformer, "transformer_encoder.num_layers"),
            heads=_integer(transformer, "transformer_encoder.num_attention_heads"),
            ff_dim=_integer(transformer, "transformer_encoder.inner_size"),
            norm="post",
            activation="relu",
            position="none",
            permutation="none",
            estimate_layers=(),
            dropout=_probability(modules, "sortformer_modules.dropout_rate"),
        ),
        labelling="nemo",
        speaker_cache=read_speaker_cache(modules, "sortformer_modules", SPEAKER_CACHE, SpeakerCacheConfig(), num_slots),
    )


def _section(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section after checking that all of its settings are supported."""
    written = values.get(name)
    if not isinstance(written, Mapping):
        raise ConfigError(f"it has no section '{name}'")
    section = _DEFAULTS.get(name, {}) | {str(key): _resolve(value, values) for key, value in written.items()}
    kind = str(section.get("_target_", "")).rpartition(".")[2]
    if kind != _CLASSES[name]:
        raise ConfigError(f"{name} is NeMo's '{kind}', but '{_CLASSES[name]}' is expected")
    for key, value in section.items():
        if key in _FIXED[name]:
            _check_fixed(f"{name}.{key}", value, _FIXED[name][key])
        elif key not in _FREE[name] and value not in (None, False):
            raise ConfigError(f"{name}.{key} (here {value!r}) is a setting that this version does not support")
    return section


def _check_fixed(name: str, value: Any, only: Any) -> None:
    off = value is None and (not only or name.rpartition(".")[2] in _NULLABLE)
    if not off and value != only:
        raise ConfigError(f"{name} is {value!r}, but only {only!r} is supported")


def _resolve(value: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Resolve a reference like ``${model.encoder.d_model}``; return other values as they are."""
    match = re.fullmatch(r"\$\{(?:model\.)?([\w.]+)\}", value) if isinstance(value, str) else None
    if match is None:
        return value
    found: Any = root
    for key in match[1].split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    if found is None or depth > 8:
        raise ConfigError(f"the reference {value} cannot be resolved")
    return _resolve(found, root, depth + 1)


def _integer(section: Mapping[str, Any], name: str) -> int:
    value = section.get(name.rpartition(".")[2])
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} must be a whole number, but is {value!r}")
    return value


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool | None):
        raise ConfigError(f"{name} must be true or false, but is {value!r}")
    return bool(value)


def _probability(section: Mapping[str, Any], name: str) -> float:
    value = section.get(name.rpartition(".")[2])
    if not isinstance(value, int | float):
        raise ConfigError(f"{name} must be a number, but is {value!r}")
    return float(value)

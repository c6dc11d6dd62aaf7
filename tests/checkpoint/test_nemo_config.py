"""NeMo's configurations: the published ones are supported, and no setting that affects the output is ignored."""

import copy
import inspect
from dataclasses import replace
from typing import Any

import pytest
import yaml

from sortformer.checkpoint.contents import blank
from sortformer.checkpoint.nemo_config import model_config
from sortformer.checkpoint.nemo_export import nemo_values
from sortformer.checkpoint.nemo_keys import key_table
from sortformer.config.presets import model_presets
from sortformer.config.stream import SpeakerCacheConfig
from sortformer.errors import ConfigError
from tests.checkpoint.archives import recorded_parts
from tests.checkpoint.goldens import shared


def test_the_description_of_v1():
    config = model_config(recorded_parts()[0])
    assert (config.features.num_mels, config.features.normalize, config.features.gain) == (80, "per_feature", "peak")
    assert (config.encoder.position, config.encoder.conv_norm, config.encoder.input_scale) == ("xl", "batch", True)
    assert (config.head.norm, config.head.position, config.head.permutation) == ("post", "none", "none")
    assert config.labelling == "nemo"


def test_a_streaming_model_has_no_gain():
    values = recorded_parts()[0] | {"streaming_mode": True}
    assert model_config(values).features.gain == "none"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("target", "nemo.collections.asr.models.EncDecRNNTModel", "EncDecRNNTModel"),
        ("preprocessor", None, "no section 'preprocessor'"),
        ("encoder._target_", "nemo.collections.asr.modules.SqueezeformerEncoder", "SqueezeformerEncoder"),
        ("encoder.subsampling", "striding", "'striding'"),
        ("encoder.subsampling_factor", 4, "subsampling_factor is 4"),
        ("encoder.att_context_size", [70, 13], "att_context_size is [70, 13]"),
        ("encoder.self_attention_model", "abs_pos", "'abs_pos'"),
        ("encoder.conv_norm_type", "layer_norm", "'layer_norm'"),
        ("encoder.conv_context_size", "causal", "conv_context_size"),
        ("encoder.conv_context_size", [8, 0], "conv_context_size is [8, 0]"),
        ("encoder.conv_context_style", "dcc", "conv_context_style is 'dcc'"),
        ("encoder.reduction_factor", 2, "reduction_factor is 2"),
        ("preprocessor.highfreq", 4000, "highfreq is 4000"),
        ("preprocessor.n_window_size", 320, "n_window_size is 320"),
        ("encoder.global_tokens", 1, "does not support"),
        ("encoder.d_model", 128, "must be 128"),
        ("encoder.d_model", "64", "d_model must be a whole number, but is '64'"),
        ("encoder.n_layers", True, "n_layers must be a whole number, but is True"),
        ("encoder.dropout", "much", "a number"),
        ("encoder.dropout", 2.0, "dropout must be"),
        ("encoder.n_layers", "${model.nowhere}", "cannot be resolved"),
        ("encoder.n_layers", "${encoder.n_layers}", "cannot be resolved"),
        ("encoder.feat_in", 128, "feat_in must be 80"),
        ("preprocessor.window_size", 0.02, "window_size is 0.02"),
        ("preprocessor.normalize", "all_features", "all_features"),
        ("preprocessor.normalize", {"fixed_mean": [0.0], "fixed_std": [1.0]}, "fixed_mean"),
        ("preprocessor.preemph", 0.9, "preemph is 0.9"),
        ("preprocessor.preemph", None, "preemph is None"),
        ("preprocessor.window", None, "window is None"),
        ("preprocessor.log", None, "log is None"),
        ("encoder.xscaling", "false", "xscaling must be true or false, but is 'false'"),
        ("streaming_mode", "false", "streaming_mode must be true or false, but is 'false'"),
        ("transformer_encoder.pre_ln", True, "pre_ln is True"),
        ("transformer_encoder.hidden_act", "gelu", "'gelu'"),
        ("sortformer_modules.tf_d_model", 48, "tf_d_model must be 32"),
        ("sortformer_modules._target_", "acme.OtherModules", "'OtherModules'"),
        ("sortformer_modules.frobnicate", 7, "does not support"),
        ("sortformer_modules.upsample_factor", 8, "upsample_factor is 8"),
        ("sortformer_modules.use_learnable_sil_emb", True, "use_learnable_sil_emb is True"),
        ("sortformer_modules.max_index", 9, "max_index is 9"),
        ("sortformer_modules.spkcache_sil_frames_per_spk", "3", "spkcache_sil_frames_per_spk is '3'"),
        ("sortformer_modules.spkcache_sil_frames_per_spk", 10**9, "spkcache_sil_frames_per_spk is 1000000000"),
        ("sortformer_modules.spkcache_sil_frames_per_spk", 50, "too small for 4 slots: it needs 204"),
        ("sortformer_modules.spkcache_sil_frames_per_spk", 2.5, "a whole number"),
        ("sortformer_modules.pred_score_threshold", 0.5, "pred_score_threshold is not supported"),
        ("sortformer_modules.sil_threshold", float("nan"), "sil_threshold is nan"),
        ("eps", 1e-5, "eps is 1e-05"),
        ("high_resolution", True, "as in Nemotron 3, which is supported only as published for transformers"),
        ("high_resolution", 1, "high_resolution must be true or false, but is 1"),
        ("output_subsampling_factor", 16, "output_subsampling_factor is 16"),
    ],
)
def test_what_is_not_supported_is_named(name: str, value: Any, says: str) -> None:
    values = copy.deepcopy(recorded_parts()[0])
    section, _, key = name.rpartition(".")
    (values[section] if section else values)[key] = value
    with pytest.raises(ConfigError) as caught:
        model_config(values)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_nemo_makes_of_null_is_supported_where_it_is_the_same():
    values = recorded_parts()[0]
    values["preprocessor"] |= {"n_fft": None, "exact_pad": None}
    values["encoder"] |= {"att_context_size": None, "causal_downsampling": None}
    values["transformer_encoder"] |= {"pre_ln": None}
    assert model_config(values) == model_config(recorded_parts()[0])


def test_what_nemo_has_another_default_for_may_not_be_left_out():
    for section, key in (("preprocessor", "window_size"), ("encoder", "subsampling_factor")):
        values = copy.deepcopy(recorded_parts()[0])
        del values[section][key]
        with pytest.raises(ConfigError, match=f"{section}.{key} is"):
            model_config(values)


def test_the_same_may_be_said_in_other_words():
    values = recorded_parts()[0]
    values["preprocessor"] |= {"window_size": None, "n_window_size": 400, "highfreq": 8000}
    kernel = values["encoder"]["conv_kernel_size"]
    values["encoder"] |= {"conv_context_size": [kernel // 2] * 2, "subsampling_conv_chunking_factor": -1}
    assert model_config(values) == model_config(recorded_parts()[0])


_CLASSES = {
    "preprocessor": "AudioToMelSpectrogramPreprocessor",
    "encoder": "ConformerEncoder",
    "transformer_encoder": "transformer.transformer_encoders.TransformerEncoder",
    "sortformer_modules": "sortformer_modules.SortformerModules",
}


@pytest.mark.oracle
@pytest.mark.parametrize("section", _CLASSES)
def test_defaults_of_nemo_that_are_written_out_change_nothing(section):
    module, _, name = f"nemo.collections.asr.modules.{_CLASSES[section]}".rpartition(".")
    kind = getattr(pytest.importorskip(module, reason="nemo_toolkit[asr] (NeMo 3.0.0) is absent"), name)
    for key, parameter in inspect.signature(kind).parameters.items():
        values = copy.deepcopy(recorded_parts()[0])
        values[section].pop(key, None)
        try:
            left_out = model_config(values)
        except ConfigError:  # the setting is required
            continue
        assert parameter.default is not parameter.empty, key
        values[section][key] = parameter.default
        assert model_config(values) == left_out, key


def test_as_many_subsampling_channels_as_the_encoder_has():
    values = recorded_parts()[0]
    values["encoder"]["subsampling_conv_channels"] = -1
    assert model_config(values).encoder.subsampling_channels == values["encoder"]["d_model"]


@pytest.mark.parametrize(("mode", "gain"), [(True, "none"), (False, "peak")])
def test_the_streaming_mode_may_be_a_reference(mode, gain):
    values = recorded_parts()[0] | {
        "mode": mode,
        "live": "${mode}",
        "stream": "${live}",
        "streaming_mode": "${model.stream}",
    }
    assert model_config(values).features.gain == gain


CACHE = SpeakerCacheConfig(188, 5, 0.1, 0.5, 0.3, 0.25, 0.7, 0.9)
WRITTEN = {
    "spkcache_sil_frames_per_spk": 5,
    "pred_score_threshold": 0.1,
    "scores_boost_latest": 0.5,
    "sil_threshold": 0.3,
    "strong_boost_rate": 0.25,
    "weak_boost_rate": 0.7,
    "min_pos_scores_rate": 0.9,
}


def test_the_speaker_cache_of_the_presets_chooses_as_the_description_says():
    values = recorded_parts()[0]
    values["streaming_mode"], values["preprocessor"]["normalize"] = True, "NA"
    ordinary = model_presets(model_config(values))
    values["sortformer_modules"] |= WRITTEN
    config = model_config(values)
    assert config.speaker_cache == CACHE
    assert model_presets(config) == {name: replace(preset, speaker_cache=CACHE) for name, preset in ordinary.items()}
    assert nemo_values(config)["sortformer_modules"].items() >= WRITTEN.items()
    assert model_config(nemo_values(config)) == config


def test_a_speaker_cache_like_that_of_the_presets_is_none_of_its_own():
    values = recorded_parts()[0]
    values["sortformer_modules"] |= {"sil_threshold": 0.2, "weak_boost_rate": 1.5}
    assert model_config(values).speaker_cache is None


def test_settings_without_effect_may_be_new():
    values = recorded_parts()[0]
    values["encoder"]["reduction"] = None
    values["preprocessor"]["use_grads"] = False
    values["sortformer_modules"] |= {"async_desync_updates": False, "use_learnable_sil_emb": None}
    values["sortformer_modules"] |= {"chunk_len": 6, "fifo_len": 9, "chunk_right_context": 7, "chunk_left_context": 2}
    values["sortformer_modules"] |= {"spkcache_len": 99, "causal_attn_rc": 3}
    values["sortformer_modules"] |= {"spkcache_update_period": 144, "spkcache_refresh_rate": 7, "scores_add_rnd": 2.0}
    assert model_config(values) == model_config(recorded_parts()[0])


@pytest.mark.data
@pytest.mark.parametrize(
    ("generation", "parameters", "gain"), [("v1", 123_219_976, "peak"), ("v2", 117_693_960, "none")]
)
def test_published_configurations_make_the_published_models(generation, parameters, gain):
    values = yaml.safe_load(shared(f"models/{generation}_model_config.yaml").read_text())
    config = model_config(values)
    assert config.features.gain == gain
    assert config.speaker_cache is None
    model = blank(config)
    unused = 2 * config.head.dim * config.head.num_slots + config.head.num_slots
    assert sum(parameter.numel() for parameter in model.parameters()) + unused == parameters

    lines = shared(f"nemo_{generation}_state_dict.txt").read_text().splitlines()
    theirs = {name: shape for name, shape, *_ in (line.split("\t") for line in lines if "\t" in line)}
    table = key_table(config)
    ours = {name: str(tuple(tensor.shape)) for name, tensor in table.to_theirs(model.state_dict()).items()}
    assert ours == {name: shape for name, shape in theirs.items() if name not in table.dropped}
    assert set(table.dropped) <= set(theirs)

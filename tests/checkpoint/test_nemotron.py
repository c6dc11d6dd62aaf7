"""Nemotron's folders: the published shape, and refusal of what is not supported."""

import copy
import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

from sortformer import checkpoint
from sortformer.checkpoint.contents import blank
from sortformer.checkpoint.nemotron import key_table, model_config
from sortformer.config.presets import model_presets
from sortformer.config.stream import SpeakerCacheConfig
from sortformer.errors import ConfigError, InputError
from tests.checkpoint.goldens import GOLDEN, shared

TINY = json.loads((GOLDEN / "tiny_nemotron3" / "config.json").read_text())


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("audio_config.hidden_act", "relu", "'relu'"),
        ("audio_config.num_key_value_heads", 2, "must be 4"),
        ("audio_config.subsampling_factor", 4, "subsampling_factor is 4"),
        ("audio_config.rope_parameters", {"rope_type": "yarn"}, "'yarn'"),
        ("audio_config.rope_parameters", {"rope_theta": 5e5}, "rope_theta is 500000.0"),
        ("audio_config.rope_theta", 5e5, "rope_theta is 500000.0"),
        ("audio_config.rope_scaling", {"type": "linear", "factor": 2.0}, "rope_scaling is"),
        ("audio_config.partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"),
        ("audio_config.num_hidden_layers", 10**9, "between 0 and 1000"),
        ("audio_config.num_hidden_layers", 2.5, "audio_config.num_hidden_layers must be a whole number, but is 2.5"),
        ("head_config.hidden_size", True, "head_config.hidden_size must be a whole number, but is True"),
        ("audio_config.hidden_size", 66, "not a multiple"),
        ("head_config.audio_hidden_size", 32, "must be 64"),
        ("head_config.subsampling_factor", 4, "must be 8"),
        ("streaming_config.num_speakers", 4, "must be 8"),
        ("streaming_config.subsampling_factor", 4, "subsampling_factor is 4"),
        ("streaming_config.fifo_length", 188, "fifo_length is 188"),
        ("streaming_config.speaker_cache_length", 188, "speaker_cache_length is 188"),
        ("streaming_config.speaker_cache_update_period", 144, "speaker_cache_update_period is 144"),
        ("streaming_config.prediction_score_threshold", 0.5, "prediction_score_threshold is not supported"),
        ("streaming_config.weak_boost_rate", "1", "weak_boost_rate is '1'"),
        ("streaming_config.speaker_cache_silence_frames_per_speaker", 40, "too small for 8 slots: it needs 328"),
        ("streaming_config.sil_threshold", 0.2, "does not support"),
        ("audio_config.foo", 3, "audio_config.foo (here 3) is a setting that this version does not support"),
        ("audio_config.layer_norm_eps", 1e-3, "does not support"),
        ("audio_config.attention_bias", True, "does not support"),
        ("audio_config.rope_parameters", {"rope_type": "default", "factor": 2.0}, "rope_parameters.factor"),
        ("head_config.hidden_act", "gelu", "does not support"),
        ("chunk_length", 188, "chunk_length is 188"),
        ("chunk_left_context", 1, "chunk_left_context is 1"),
        ("chunk_right_context", 1, "chunk_right_context is 1"),
        ("fifo_length", 188, "fifo_length is 188"),
        ("speaker_cache_update_period", 144, "speaker_cache_update_period is 144"),
        ("streaming_config", 3, "streaming_config (here 3)"),
        ("streaming_config", False, "streaming_config (here False)"),
        ("foo", [3], "does not support"),
    ],
)
def test_what_is_not_supported_is_named(name: str, value: Any, says: str) -> None:
    values = copy.deepcopy(TINY)
    section, _, key = name.rpartition(".")
    (values[section] if section else values)[key] = value
    if name == "audio_config.hidden_size":
        values["head_config"]["audio_hidden_size"] = value
    with pytest.raises(ConfigError) as caught:
        model_config(values)
    assert says in str(caught.value)


def test_the_speaker_cache_of_the_presets_chooses_as_the_config_says():
    ordinary = model_presets(model_config(TINY))
    assert model_config(TINY).speaker_cache is None
    written = {
        "speaker_cache_silence_frames_per_speaker": 5,
        "prediction_score_threshold": 0.1,
        "latest_frames_score_boost": 0.5,
        "strong_boost_rate": 0.25,
        "weak_boost_rate": 0.7,
        "min_positive_scores_rate": 0.9,
    }
    cache = SpeakerCacheConfig(264, 5, 0.1, 0.5, 0.2, 0.25, 0.7, 0.9)
    config = model_config(TINY | {"streaming_config": TINY["streaming_config"] | written})
    assert config.speaker_cache == cache
    assert model_presets(config) == {name: replace(preset, speaker_cache=cache) for name, preset in ordinary.items()}


@pytest.mark.data
def test_a_config_without_sizes_is_the_published_model():
    config = model_config({"model_type": "nemotron3_diarization"})
    model = blank(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == 99_226_504
    lines = shared("n3d_hf_state_dict.txt").read_text().splitlines()
    theirs = {name: shape for name, shape, *_ in (line.split("\t") for line in lines if "\t" in line)}
    ours = key_table(config).to_theirs(model.state_dict())
    assert {name: str(tuple(tensor.shape)) for name, tensor in ours.items()} == theirs


def test_a_damaged_folder_names_its_file(tmp_path):
    folder = tmp_path / "nemotron"
    folder.mkdir()
    for file in (GOLDEN / "tiny_nemotron3").iterdir():
        shutil.copyfile(file, folder / file.name)  # without its permissions
    (folder / "config.json").write_text(json.dumps(TINY | {"audio_config": TINY["audio_config"] | {"hidden_act": "x"}}))
    with pytest.raises(InputError, match=r"config\.json describes a model that is not supported: .*'x'"):
        checkpoint.load(folder)
    (folder / "config.json").write_text(json.dumps(TINY))
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-9])
    with pytest.raises(InputError, match=r"model\.safetensors are damaged"):
        checkpoint.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"holds no model: it has no model\.safetensors"):
        checkpoint.load(folder)

"""Nemotron's folders: the published shape, and refusal of what is not supported."""

import copy
import json
import shutil
from typing import Any

import pytest

from sortformer import checkpoint
from sortformer.checkpoint.contents import blank
from sortformer.checkpoint.nemotron import key_table, model_config
from sortformer.errors import ConfigError, InputError
from tests.checkpoint.goldens import GOLDEN, shared

TINY = json.loads((GOLDEN / "tiny_nemotron3" / "config.json").read_text())


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("audio_config.hidden_act", "relu", "'relu'"),
        ("audio_config.num_key_value_heads", 2, "should be 4"),
        ("audio_config.subsampling_factor", 4, "subsampling_factor is 4"),
        ("audio_config.rope_parameters", {"rope_type": "yarn"}, "'yarn'"),
        ("audio_config.rope_parameters", {"rope_theta": 5e5}, "rope_theta is 500000.0"),
        ("audio_config.rope_theta", 5e5, "rope_theta is 500000.0"),
        ("audio_config.rope_scaling", {"type": "linear", "factor": 2.0}, "rope_scaling is"),
        ("audio_config.partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"),
        ("audio_config.num_hidden_layers", 10**9, "between 0 and 1000"),
        ("audio_config.num_hidden_layers", 2.5, "whole number"),
        ("audio_config.hidden_size", 66, "not a multiple"),
        ("head_config.audio_hidden_size", 32, "should be 64"),
        ("head_config.subsampling_factor", 4, "should be 8"),
    ],
)
def test_what_is_not_supported_is_named(name: str, value: Any, says: str) -> None:
    values = copy.deepcopy(TINY)
    section, key = name.split(".")
    values[section][key] = value
    if name == "audio_config.hidden_size":
        values["head_config"]["audio_hidden_size"] = value
    with pytest.raises(ConfigError) as caught:
        model_config(values)
    assert says in str(caught.value)


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
    shutil.copytree(GOLDEN / "tiny_nemotron3", folder)
    (folder / "config.json").write_text(json.dumps(TINY | {"audio_config": TINY["audio_config"] | {"hidden_act": "x"}}))
    with pytest.raises(InputError, match=r"config\.json describes a model that cannot be used here: .*'x'"):
        checkpoint.load(folder)
    (folder / "config.json").write_text(json.dumps(TINY))
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-9])
    with pytest.raises(InputError, match=r"model\.safetensors are damaged"):
        checkpoint.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"cannot read .*model\.safetensors"):
        checkpoint.load(folder)

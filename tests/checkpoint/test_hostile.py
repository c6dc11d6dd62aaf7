"""Checkpoints that are made to harm: refused with one sentence, before anything large is made of them."""

import json
import re
from typing import Any

import pytest
import torch

from sortformer import checkpoint
from sortformer.errors import InputError
from tests.checkpoint.archives import recorded_parts, write_archive
from tests.small_models import small_config, small_model

PROJECTION = "sortformer_modules.encoder_proj.weight"


def refusal(path: Any) -> str:
    """Return the one sentence with which a checkpoint is refused; it names the file."""
    with pytest.raises(InputError) as caught:
        checkpoint.load(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(path) in sentence
    return sentence


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("encoder.n_layers", 10**9, "layers must be between 0 and 1000"),
        ("transformer_encoder.num_layers", 10**9, "layers must be between 0 and 1000"),
        ("encoder.conv_kernel_size", -1, "conv_kernel must be odd and >= 1"),
        ("encoder.conv_kernel_size", 10**12 + 1, "another shape for"),
        ("encoder.subsampling_conv_channels", 10**6, "another shape for"),
        ("encoder.ff_expansion_factor", 10**9, "another shape for"),
        ("encoder.ff_expansion_factor", 10**30, "a larger model than there can be"),
        ("sortformer_modules.num_spks", 10**12, "another shape for"),
        ("sortformer_modules.num_spks", 10**18, "a larger model than there can be"),
    ],
)
def test_a_description_of_more_than_the_file_holds(tmp_path, setting, value, says):
    values, weights = recorded_parts()
    section, _, key = setting.partition(".")
    values[section][key] = value
    assert says in refusal(write_archive(tmp_path / "large.nemo", values, weights))


@pytest.mark.parametrize(
    ("part", "values", "says"),
    [
        ("encoder", {"dim": 10**9, "heads": 1}, "another shape for"),
        ("head", {"attention": [{"position": "learned", "learned_positions": 10**15}]}, "they lack"),
        ("head", {"attention": [{"core": {"kind": "favor", "features": 10**12}}]}, "features .* must be <= 65536"),
    ],
)
def test_a_config_of_more_than_the_folder_holds(tmp_path, part, values, says):
    checkpoint.save(tmp_path, small_model(small_config()))
    config = json.loads((tmp_path / "config.json").read_text())
    config["model"][part] |= values
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert re.search(says, refusal(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        lambda weight: weight.bool(),
        lambda weight: weight.to(torch.complex64),
        lambda weight: weight.to(torch.float8_e4m3fn),
        lambda weight: weight.to_sparse(),
        lambda weight: torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8),
        lambda weight: weight.to("meta"),
        lambda weight: weight.flatten()[:1].clone().expand(weight.shape),
        lambda weight: weight.flatten()[:1].clone().expand(10**6, 10**6),
    ],
    ids=["bool", "complex", "float8", "sparse", "quantised", "meta", "repeated", "endless"],
)
@pytest.mark.parametrize("name", [PROJECTION, "preprocessor.featurizer.fb"])
def test_tensors_that_are_no_plain_arrays(tmp_path, name, change):
    values, weights = recorded_parts()
    path = write_archive(tmp_path / "odd.nemo", values, weights | {name: change(weights[name])})
    assert f"holds no plain array of numbers as '{name}'" in refusal(path)


def test_whole_numbers_are_no_weights(tmp_path):
    values, weights = recorded_parts()
    path = write_archive(tmp_path / "whole.nemo", values, weights | {PROJECTION: weights[PROJECTION].long()})
    assert "they have whole numbers for 'head.input.weight'" in refusal(path)


def test_weights_beyond_float32_are_not_finite(tmp_path):
    values, weights = recorded_parts()
    large = weights[PROJECTION].double() * 1e300
    path = write_archive(tmp_path / "large.nemo", values, weights | {PROJECTION: large})
    assert "not finite (head.input.weight)" in refusal(path)

"""The script that trains for calls: its initial model, its effect on waves, and that all else is unchanged."""

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sortformer import checkpoint
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.model import Sortformer
from tests.simulate.makers import make_bank_folder
from tests.streaming.tiny import noise

RECIPE = Path(__file__).resolve().parents[2] / "recipes/default_model"


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(RECIPE / "narrowband.py"))


def model(channels: int = 4) -> Sortformer:
    torch.manual_seed(0)
    config = ModelConfig(
        FeatureConfig(num_mels=16, normalize="fixed"),
        EncoderConfig(subsampling_channels=channels, dim=16, layers=1, heads=2, ff_dim=16),
        HeadConfig(num_slots=4, dim=16, layers=2, heads=2, ff_dim=16, estimate_layers=(1,)),
    )
    return Sortformer(config).eval()


@pytest.mark.parametrize("channels", [4, 128])
def test_it_begins_as_the_first_subsampling_which_hears_nothing_above(script, channels):
    plain = model(channels)
    wider = script["widened"](plain)
    feats, lengths = plain.features(torch.from_numpy(noise(32_000))[None])
    feats[..., 12:] = 0.0  # like values outside of the features
    with torch.no_grad():
        expected, _ = plain.encoder.subsample(feats, lengths)
        found, _ = wider.encoder.subsample(feats, lengths, torch.tensor([True]))
    torch.testing.assert_close(found, expected)


def test_a_call_has_nothing_above_4_khz(script):
    rng = np.random.default_rng(0)
    for _ in range(5):
        call = script["called"](torch.from_numpy(noise(32_000)), rng)
        power = torch.fft.rfft(call).abs().square()
        assert power[8_400:].sum() < 1e-9 * power.sum()


def test_only_the_new_subsampling_learns(script, tmp_path, monkeypatch):
    bank = make_bank_folder(tmp_path)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'steps = 2\nworkers = 0\n[data]\nbank = "{bank}"\nspeeds = [1.0]\nrooms = 2\ncache = "{tmp_path}/cache"\n'
        "[[stages]]\nuntil_step = 2\nduration_s = 4\nbatch_size = 2\n[optimizer]\nwarmup_steps = 1\n"
    )
    begun = model()
    checkpoint.save(tmp_path / "begun", begun, PostprocessConfig(onset=0.6))
    monkeypatch.setattr(sys, "argv", ["narrowband.py", str(recipe), str(tmp_path / "begun"), str(tmp_path / "out")])
    script["main"]()
    torch.set_flush_denormal(False)
    ended, postprocess = checkpoint.load(tmp_path / "out")
    assert postprocess == PostprocessConfig(onset=0.6)
    start, weights = script["widened"](begun).state_dict(), ended.state_dict()
    changed = {name for name in start if not torch.equal(start[name], weights[name])}
    assert changed
    assert all(name.startswith("encoder.narrowband.") for name in changed)


def test_a_model_that_has_one_is_refused(script, tmp_path, monkeypatch, capsys):
    checkpoint.save(tmp_path / "wider", script["widened"](model()))
    recipe = str(RECIPE / "narrowband.toml")
    monkeypatch.setattr(sys, "argv", ["narrowband.py", recipe, str(tmp_path / "wider"), str(tmp_path / "out")])
    with pytest.raises(SystemExit, match="2"):
        script["main"]()
    torch.set_flush_denormal(False)
    assert "already" in capsys.readouterr().err

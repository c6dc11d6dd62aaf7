"""The smoke test of model and trainer: overfit one small batch of synthetic voices."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sortformer import checkpoint
from sortformer.config.train import StageConfig, TrainConfig
from sortformer.data import Batches, Sources
from sortformer.simulate import VoiceBank
from sortformer.train import train
from sortformer.train.evaluation import dev_der
from sortformer.train.processes import Processes
from tests.recipes.script import run_script

RECIPE = Path(__file__).resolve().parents[2] / "recipes/overfit_one"


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("voices")
    runpy.run_path(str(RECIPE / "make_voices.py"))["main"](folder)
    return folder


def test_the_synthetic_voices_are_a_bank_of_phrases_and_pauses(voices):
    bank = VoiceBank.load(voices, "train", (1.0,))
    assert len(bank.voices) == 5
    phrases = bank.voice_phrases[1:] - bank.voice_phrases[:-1]
    assert phrases.min() >= 3
    assert 0.4 < bank.activity.mean() < 0.9


def test_the_script_trains_in_any_folder_as_long_as_its_recipe_says(tmp_path):
    text = (RECIPE / "recipe.toml").read_text().replace("../../runs/overfit_one/voices", "absent").replace("150", "2")
    (tmp_path / "recipe.toml").write_text(text)
    out = run_script(RECIPE / "run.sh", tmp_path, OUT=tmp_path, RECIPE=tmp_path / "recipe.toml")
    assert json.loads(out.splitlines()[-1])["step"] == 2
    assert checkpoint.load(tmp_path / "run/model")


@pytest.mark.slow
def test_a_batch_is_learnt_by_heart(voices, tmp_path):
    recipe = TrainConfig.read(RECIPE / "recipe.toml")
    steps = 70
    config = replace(
        recipe,
        data=replace(recipe.data, bank=str(voices)),
        steps=steps,
        checkpoint_every=steps,
        stages=(StageConfig(steps, 4.0, 2, (0.0, 1.0)),),
    )
    lines: list[dict[str, float]] = []
    model, _ = checkpoint.load(train(config, tmp_path, report=lines.append))
    assert lines[0]["output"] > 0.6  # the loss of chance is ln 2
    assert lines[-1]["output"] < 0.1
    assert lines[-1]["estimates"] < 0.2
    batch = Batches(Sources.load(config.data), config, config.model)[0]
    assert dev_der(model, [batch], Processes(torch.device("cpu")))["der_sorted"] < 0.1

"""``sortformer train``: a recipe in, a model out that ``diarize`` can use."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.simulate.makers import make_bank_folder

RECIPE = """
steps = 2
workers = 0
checkpoint_every = 1
evaluate_every = 1
evaluate_conversations = 1

[data]
bank = "bank"
speeds = [1.0]

[simulation]
speaker_weights = [1.0]

[[stages]]
until_step = 2
duration_s = 3
batch_size = 1

[model.encoder]
subsampling_channels = 2
dim = 8
layers = 1
heads = 2
ff_dim = 8

[model.head]
dim = 8
layers = 2
heads = 2
ff_dim = 8
estimate_layers = [1]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    make_bank_folder(tmp_path / "bank")
    path = tmp_path / "little.toml"
    path.write_text(RECIPE)
    return path


def test_a_recipe_becomes_a_model(cli: Cli, recipe: Path, wav: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(recipe.parent)
    outcome = cli("train", recipe, "--device", "cpu")
    assert (outcome.code, outcome.out) == (0, "runs/little/model\n")
    lines = [json.loads(line) for line in Path("runs/little/log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2]
    reports = outcome.err.splitlines()
    assert [report.split(":")[0] for report in reports] == ["step 1", "step 2"]
    assert all("loss" in report and "dev DER" in report for report in reports)
    assert cli("diarize", wav, "--model", "runs/little/model").code == 0


def test_a_recipe_that_is_not_there_or_misspelt(cli: Cli, recipe: Path, tmp_path: Path):
    assert str(tmp_path / "absent.toml") in cli("train", tmp_path / "absent.toml").errors[0]
    recipe.write_text(RECIPE.replace("workers", "worker"))
    outcome = cli("train", recipe, "-o", tmp_path / "run")
    assert outcome.code == 1
    assert "did you mean 'workers'?" in outcome.errors[0]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_says_how_to_go_on(cli: Cli, recipe: Path, tmp_path: Path, monkeypatch, number: signal.Signals):
    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(number)

    monkeypatch.setattr("sortformer.train.train", interrupted)
    outcome = cli("train", recipe, "-o", tmp_path / "run")
    assert outcome.code == 130
    assert outcome.err == f"interrupted: the same command goes on from the last state in {tmp_path / 'run'}\n"

"""``sortformer train``: from a recipe to a model for ``diarize``."""

import json
import math
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from sortformer.cli.console import bar
from sortformer.cli.train import _Reporter
from sortformer.config.train import TrainConfig
from sortformer.train.step import take_step
from tests.cli.conftest import Cli
from tests.processes import eventually, started
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

[optimizer]
warmup_steps = 1

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


def test_settings_on_the_command_line_change_the_recipe(cli: Cli, recipe: Path, tmp_path: Path):
    options = ("train", recipe, "-o", tmp_path / "run", "--device", "cpu", "-q")
    assert cli(*options, "--set", "steps=1", "--set", "loss.sort_weight=1").code == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["steps"], config["loss"]["sort_weight"]) == (1, 1.0)
    resumed = cli(*options)
    assert resumed.code == 0
    assert "loss.sort_weight" in resumed.err
    assert cli(*options, "--set", "steps").errors == [
        "a setting needs KEY=VALUE, such as loss.sort_weight=1, got 'steps'"
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_the_step_end_and_saves_it(
    cli: Cli, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
):
    def pressed(*step: Any) -> dict[str, float]:
        signal.raise_signal(number)
        return take_step(*step)

    recipe.write_text(RECIPE.replace("checkpoint_every = 1", "checkpoint_every = 9"))
    options = ("train", recipe, "-o", tmp_path / "run", "--device", "cpu")
    with monkeypatch.context() as patch:
        patch.setattr("sortformer.train.loop.take_step", pressed)
        outcome = cli(*options)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.splitlines()[-1] == "interrupted: the same command continues from step 1"
    assert "stopping after this step, which is saved" in outcome.err
    steps = [json.loads(line)["step"] for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert cli(*options).code == 0
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [*steps, 2, 2] == [1, 1, 2, 2]  # with their evaluations


def endless(recipe: Path, run: Path, fresh: bool = False) -> subprocess.Popen[str]:
    """A training that does not end by itself, with one worker."""
    recipe.write_text(
        RECIPE.replace("workers = 0", "workers = 1")
        .replace("checkpoint_every = 1", "checkpoint_every = 100_000")
        .replace("evaluate_conversations = 1", "evaluate_conversations = 0")
        .replace("= 2\n", "= 100_000\n", 1)
        .replace("until_step = 2", "until_step = 100_000")
    )
    options = {"fresh": fresh, "start_new_session": True, "restore_signals": False}
    return started("train", recipe, "-o", run, "--device", "cpu", **options)


def steps_of(run: Path) -> int:
    return len((run / "log.jsonl").read_text().splitlines()) if (run / "log.jsonl").exists() else 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_of_a_job_costs_no_step_also_where_nobody_reads_what_is_said(
    recipe: Path, tmp_path: Path, number: signal.Signals
):
    run = tmp_path / "run"
    with endless(recipe, run, fresh=True) as training:  # so that it ends its workers as Python does
        assert training.stderr is not None
        training.stderr.close()
        eventually(lambda: steps_of(run) >= 2)
        os.killpg(training.pid, number)
        assert training.wait(60) == 130
    last = json.loads((run / "log.jsonl").read_text().splitlines()[-1])["step"]
    assert torch.load(run / "state.pt", weights_only=True)["step"] == last
    with pytest.raises(ProcessLookupError):  # no worker is left
        os.killpg(training.pid, 0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_no_worker_outlives_a_training_that_was_killed(recipe: Path, tmp_path: Path):
    with endless(recipe, tmp_path / "run") as training:
        eventually(lambda: steps_of(tmp_path / "run") >= 2)
        training.kill()
    eventually(lambda: not living(training.pid))


def living(group: int) -> list[int]:
    """Return the processes of a group, without zombies."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process may have just ended
            state, _, own, *_ = path.read_text().rpartition(")")[2].split()
            if int(own) == group and state != "Z":
                found.append(int(path.parent.name))
    return found


def test_what_is_pressed_in_the_last_step_changes_nothing(cli: Cli, recipe: Path, tmp_path: Path, monkeypatch):
    def pressed(state: Any, *rest: Any) -> dict[str, float]:
        if state.step == 1:
            signal.raise_signal(signal.SIGINT)
        return take_step(state, *rest)

    monkeypatch.setattr("sortformer.train.loop.take_step", pressed)
    outcome = cli("train", recipe, "-o", tmp_path / "run", "--device", "cpu")
    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'run' / 'model'}\n")


@pytest.mark.parametrize(("file", "name"), [("little.toml", "little"), ("night/recipe.toml", "night")])
def test_a_run_is_called_as_its_recipe_and_no_denormal_number_slows_it_down(
    cli: Cli, recipe: Path, monkeypatch: pytest.MonkeyPatch, file: str, name: str
):
    flushed = list[bool]()

    def run(config: TrainConfig, folder: Path, *, stop: Callable[[int], bool], **_: Any) -> Path:
        stop(config.steps)
        assert flushed == [True]
        return folder

    monkeypatch.chdir(recipe.parent)
    Path("night").mkdir()
    recipe.rename(file)
    monkeypatch.setattr("sortformer.train.train", run)
    monkeypatch.setattr(torch, "set_flush_denormal", flushed.append)
    assert cli("train", file).out == f"runs/{name}\n"


def test_a_batch_without_a_finite_loss_leaves_that_of_the_others_to_be_shown():
    with bar(quiet=True) as shown:
        reporter = _Reporter(shown, shown.add_task("run", total=3, loss="", der=""), quiet=True)
        for step, loss in enumerate((2.0, math.nan, 4.0), start=1):
            reporter.report({"step": step, "loss": loss})
    assert reporter.loss == "loss 3.053"  # (0.9 * 2 + 4) / (0.9 + 1)


@pytest.mark.parametrize("saved", [False, True])
def test_an_interrupt_before_the_first_step_stops_at_once(
    cli: Cli, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, saved: bool
):
    run = tmp_path / "run"
    if saved:
        run.mkdir()
        (run / "state.pt").touch()
    monkeypatch.setattr("sortformer.train.train", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    outcome = cli("train", recipe, "-o", run)
    whence = f"from the last state in {run}" if saved else "from the start"
    assert (outcome.code, outcome.err) == (130, f"interrupted: the same command continues {whence}\n")

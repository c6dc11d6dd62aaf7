"""The model with the lowest error stays, as long as the errors can be compared."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from sortformer import checkpoint
from sortformer.train import loop, train
from sortformer.train.state import TrainState
from sortformer.train.step import take_step
from tests.data.corpora import corpus
from tests.marks import RECIPE_IS_CHANGED
from tests.train.runs import after, assert_same, log_of, state_of


def test_evaluations_come_when_due_and_at_the_end(run_config, tmp_path):
    config = replace(run_config, evaluate_conversations=1, evaluate_every=4)
    train(config, tmp_path)
    looks = [line for line in log_of(tmp_path) if "der" in line]
    assert [line["step"] for line in looks] == [4, 6]
    for line in looks:
        assert 0 <= line["der"] <= line["der_sorted"]
        assert line["der"] == pytest.approx(line["miss"] + line["false_alarm"] + line["confusion"])


@RECIPE_IS_CHANGED
def test_the_model_with_the_lowest_error_stays_also_over_a_resume(run_config, tmp_path, monkeypatch):
    rates = {0: 0.9, 1: 0.7, 2: float("nan"), 3: 0.7, 4: 0.4, 5: 0.5, 6: 0.4, 7: 0.8, 8: 0.8}

    def look(*_: Any) -> dict[str, float]:
        return {"der": rates[step]}

    config = replace(run_config, evaluate_conversations=1, evaluate_every=1, keep_every=2)
    step, found = 0, {}

    def counted(state: TrainState, *rest: Any) -> dict[str, float]:
        nonlocal step
        line = take_step(state, *rest)
        step = state.step
        found[step] = copy.deepcopy(state.average.state_dict())
        return line

    monkeypatch.setattr(loop, "dev_der", look)
    monkeypatch.setattr(loop, "take_step", counted)
    best = []
    for steps in (1, 3, 5, 6):
        train(config, tmp_path, stop=after(steps))
        best.append(checkpoint.load(tmp_path / "best")[0].state_dict())
    for weights, expected in zip(best, (1, 1, 4, 4), strict=True):
        assert_same(dict(weights), dict(found[expected]))
    # A longer run has the same dev conversations, unless they themselves are longer.
    for steps, duration_s, expected in ((7, 3.0, 4), (8, 2.0, 8)):
        last = replace(config.stages[1], until_step=steps, duration_s=duration_s)
        train(replace(config, steps=steps, stages=(*config.stages[:1], last)), tmp_path)
        assert_same(dict(checkpoint.load(tmp_path / "best")[0].state_dict()), dict(found[expected]))
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [f"step_{n}" for n in (2, 4, 6, 8)]
    assert_same(dict(checkpoint.load(tmp_path / "models" / "step_2")[0].state_dict()), dict(found[2]))


def test_other_dev_recordings_under_the_same_name_begin_a_new_comparison(run_config, tmp_path, monkeypatch):
    rates = iter((0.1, 0.2, 0.3))
    monkeypatch.setattr(loop, "dev_der", lambda *_: {"der": next(rates)})
    dev = corpus(tmp_path / "dev", {"one": (4, [(0.5, 2.0, "ada")])})
    config = replace(run_config, data=replace(run_config.data, dev=str(dev)), evaluate_conversations=1)
    train(replace(config, evaluate_every=2), tmp_path / "run", stop=after(2))
    louder = replace(config.simulation, channel=replace(config.simulation.channel, level_dbfs=(-20.0, -19.0)))
    with pytest.warns(UserWarning, match=r"from step 2 with a changed recipe: evaluate_every, simulation\.channel"):
        train(replace(config, evaluate_every=3, simulation=louder), tmp_path / "run", stop=after(3))
    assert state_of(tmp_path / "run")["lowest_der"] == 0.1
    corpus(tmp_path / "dev", {"one": (4, [(0.5, 3.0, "ada")])})
    with pytest.warns(UserWarning, match=r"continues from step 3 with a changed recipe: data\.dev_content"):
        train(replace(config, evaluate_every=4), tmp_path / "run", stop=after(3))  # stopped before it saves a step
    train(replace(config, evaluate_every=4), tmp_path / "run", stop=after(4))
    assert state_of(tmp_path / "run")["lowest_der"] == 0.3


@pytest.mark.parametrize("part", ["bursts", "simulation"])
def test_dev_conversations_that_sound_otherwise_begin_a_new_comparison(run_config, tmp_path, monkeypatch, part: str):
    rates = iter((0.1, 0.2))
    monkeypatch.setattr(loop, "dev_der", lambda *_: {"der": next(rates)})
    config = replace(run_config, evaluate_conversations=1, evaluate_every=1)
    train(config, tmp_path, stop=after(1))
    if part == "bursts":
        config = replace(config, data=replace(config.data, bursts=2))
    else:
        channel = replace(config.simulation.channel, level_dbfs=(-40.0, -39.0))
        config = replace(config, simulation=replace(config.simulation, channel=channel))
    with pytest.warns(UserWarning, match=r"changed recipe: (data\.bursts|simulation\.channel\.level_dbfs)$"):
        train(config, tmp_path, stop=after(2))
    assert state_of(tmp_path)["lowest_der"] == 0.2


def test_what_a_run_begins_as_is_evaluated_once(run_config, tmp_path):
    begun = replace(run_config, evaluate_conversations=1, evaluate_every=9, init=str(train(run_config, tmp_path / "a")))
    for steps in (0, 1, 2):
        train(begun, tmp_path / "run", stop=after(steps))
    assert [line["step"] for line in log_of(tmp_path / "run")] == [0, 1, 2]
    first, start = (checkpoint.load(tmp_path / name)[0].state_dict() for name in ("run/best", "a/model"))
    assert_same(dict(first), dict(start))

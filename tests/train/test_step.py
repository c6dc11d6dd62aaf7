"""Steps: their batches, skipped ones, and the end of a run without progress."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from sortformer import checkpoint
from sortformer.config.model import ModelConfig
from sortformer.config.train import TrainConfig
from sortformer.data import Sources, batches
from sortformer.errors import InputError
from sortformer.simulate import Conversations
from sortformer.train import train
from sortformer.train.objective import objective
from tests.marks import RECIPE_IS_CHANGED
from tests.train.runs import after, assert_same, log_of, state_of, write_counting_network, write_voice_table


def test_a_batch_that_repeats_is_that_of_the_first_stage_to_the_end(run_config, tmp_path):
    first, second = (replace(stage, streamed_probability=1.0) for stage in run_config.stages)
    stages = replace(first, batch_size=3), replace(second, batch_size=2)
    train(replace(run_config, stages=stages, repeat=True), tmp_path)
    assert {line["audio_s"] for line in log_of(tmp_path)} == {6.0}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float, int]]:
    """Of each part of each step the weights of the teachers of voices and of counts, and the seed of dropout."""
    found = []

    def note(*arguments: Any) -> dict[str, torch.Tensor]:
        found.append((arguments[4], arguments[7], torch.initial_seed()))
        return objective(*arguments)

    monkeypatch.setattr("sortformer.train.step.objective", note)
    return found


def test_what_teachers_ask_for_falls_from_step_to_step(run_config, tmp_path, asked):
    taught = write_counting_network(tmp_path / "counts.npz", write_voice_table(tmp_path / "voices.npz", run_config))
    assert taught.teacher is not None
    stages = (replace(run_config.stages[0], until_step=3),)
    taught = replace(taught, teacher=replace(taught.teacher, weight=1.0, final_weight=0.4), stages=stages, steps=3)
    train(taught, tmp_path / "run")
    voices, counts, _ = zip(*asked, strict=True)
    assert voices == pytest.approx([1.0, 0.7, 0.4])
    assert counts == pytest.approx([0.4, 0.3, 0.2])


def test_every_part_of_every_step_drops_out_by_a_seed_of_its_own(run_config, tmp_path, asked):
    config = replace(run_config, stages=(replace(run_config.stages[0], until_step=3),), steps=3, accumulate=2)
    train(config, tmp_path / "once")
    once = asked.copy()
    train(config, tmp_path / "again")
    assert asked == 2 * once
    assert len({seed for _, _, seed in once}) == 6


def poisoned(
    sources: Sources, config: TrainConfig, model: ModelConfig, first_step: int, *share: int
) -> Iterator[tuple[Conversations, ...]]:
    for step, (batch,) in enumerate(batches(sources, config, model, first_step, *share), first_step):
        yield (replace(batch, wave=batch.wave * torch.nan) if step == 1 else batch,)


def always_poisoned(*arguments: Any) -> Iterator[tuple[Conversations, ...]]:
    for (batch,) in batches(*arguments):
        yield (replace(batch, wave=batch.wave * torch.nan),)


def test_a_batch_with_a_gradient_that_is_not_finite_is_passed_over(run_config, tmp_path, monkeypatch):
    monkeypatch.setattr("sortformer.train.loop.batches", poisoned)
    train(run_config, tmp_path, stop=after(1))
    before = state_of(tmp_path)
    train(run_config, tmp_path, stop=after(2))
    then = state_of(tmp_path)
    assert then["step"] == 2
    assert_same(then["model"], before["model"])
    assert_same(then["optimizer"]["state"], before["optimizer"]["state"])
    train(run_config, tmp_path)
    lines = log_of(tmp_path)
    assert lines[1]["loss"] is None
    assert lines[1]["grad_norm"] is None
    assert all(isinstance(line["loss"], float) for line in lines[2:])
    assert all(torch.isfinite(weight).all() for weight in state_of(tmp_path)["model"].values())


@RECIPE_IS_CHANGED
def test_a_run_whose_steps_are_all_passed_over_ends_and_keeps_what_it_had(run_config, tmp_path, monkeypatch):
    train(run_config, tmp_path, stop=after(2))
    before = state_of(tmp_path)
    monkeypatch.setattr("sortformer.train.loop.batches", always_poisoned)
    with pytest.raises(InputError, match=r"^training is stuck: the gradients of the last 2 steps are not finite"):
        train(replace(run_config, checkpoint_every=4, steps=4), tmp_path)
    with pytest.raises(InputError, match=r"^training is stuck: the gradients of the last 2 steps .* keeps what"):
        train(replace(run_config, checkpoint_every=1), tmp_path / "each")
    assert_same(state_of(tmp_path), before)


@RECIPE_IS_CHANGED
def test_a_run_that_diverges_ends_and_keeps_what_it_had(run_config, tmp_path):
    model, _ = checkpoint.load(train(run_config, tmp_path, stop=after(2)))
    before = state_of(tmp_path)
    wild = replace(run_config, optimizer=replace(run_config.optimizer, learning_rate=1e30))
    with pytest.raises(
        InputError, match=r"^training has diverged: the output of the model at step 6 is not finite; .* keeps"
    ):
        train(wild, tmp_path)
    assert_same(state_of(tmp_path), before)
    assert_same(dict(checkpoint.load(tmp_path / "model")[0].state_dict()), dict(model.state_dict()))

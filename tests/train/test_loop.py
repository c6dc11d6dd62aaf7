"""Training: what a run learns, leaves and refuses, and a complete log."""

import errno
import multiprocessing
import os
import signal
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sortformer import checkpoint
from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import FavorCore, SpanCore
from sortformer.config.data import DataConfig, RecordingsConfig
from sortformer.config.memories import CompressiveMemory, TransformerXLMemory
from sortformer.config.train import TrainConfig
from sortformer.data import Batches
from sortformer.errors import ConfigError, InputError
from sortformer.train import loop, train
from sortformer.train.initial import initial_checkpoint
from sortformer.train.lock import locked
from tests.data.corpora import corpus
from tests.small_models import small_config, small_model
from tests.train.runs import after, assert_same, log_of, state_of, write_voice_table


def test_workers_change_no_bit(run_config, tmp_path, whole):
    train(replace(run_config, workers=1), tmp_path)
    assert_same(state_of(tmp_path), state_of(whole))


def test_a_teacher_needs_a_bank(run_config, tmp_path):
    manifest = str(corpus(tmp_path, {"a": (9.0, ((0.5, 4.0, "ann"),))}))
    config = write_voice_table(tmp_path / "voices.npz", run_config)
    with pytest.raises(ConfigError, match="a teacher needs a bank of voices"):
        train(replace(config, data=DataConfig(recordings=(RecordingsConfig(manifest),))), tmp_path / "run")


def test_a_run_that_is_to_stop_at_once_takes_no_step(run_config, tmp_path):
    train(run_config, tmp_path, stop=after(0))
    assert not (tmp_path / "log.jsonl").exists()


@pytest.mark.parametrize(
    ("loss", "names"),
    [("none", set()), ("attention", {"memory_attention"}), ("autoencoding", {"memory_autoencoding"})],
)
def test_a_compressive_memory_learns_the_task_or_by_its_own_loss(run_config, tmp_path, loss, names):
    memory = CompressiveMemory(frames=3, compressed_frames=2, ratio=2, chunk_frames=5, loss=loss)
    head = replace(run_config.model.head, attention=(AttentionConfig(position="none", memory=memory),))
    weights = replace(run_config.loss, memory_weight=0.3)
    config = replace(run_config, model=replace(run_config.model, head=head), loss=weights)
    train(config, tmp_path, stop=after(2))
    for line in log_of(tmp_path):
        assert {name for name in line if name.startswith("memory_")} == names
        rest = line["output"] + weights.deep_weight * line["estimates"]
        assert line["loss"] == pytest.approx(rest + 0.3 * sum(line[name] for name in names), rel=1e-5)
        assert all(line[name] > 0 for name in names)
    now, first = state_of(tmp_path)["model"], initial_checkpoint(config)[0].model.state_dict()
    assert not now["head.blocks.0.attention.memory.compression.conv.weight"].equal(
        first["head.blocks.0.attention.memory.compression.conv.weight"]
    )


def test_spans_are_kept_short_by_their_own_loss(run_config, tmp_path):
    attention = AttentionConfig(SpanCore(max_frames=6, ramp_frames=2))
    config = replace(
        run_config, model=replace(run_config.model, head=replace(run_config.model.head, attention=(attention,)))
    )
    for weight in (0.0, 5.0):
        loss = replace(config.loss, span_weight=weight)
        train(replace(config, loss=loss), tmp_path / str(weight), stop=after(3))
        for line in log_of(tmp_path / str(weight)):
            rest = line["output"] + loss.deep_weight * line["estimates"]
            assert line["loss"] == pytest.approx(rest + weight * line["span"], rel=1e-5)
    free, kept = (log_of(tmp_path / str(weight)) for weight in (0.0, 5.0))
    assert kept[0]["span"] == free[0]["span"] == pytest.approx(3 * 0.5)  # of three layers, at first
    assert kept[-1]["span"] < min(free[-1]["span"], kept[0]["span"])


def redrawing(config: TrainConfig, every: int) -> TrainConfig:
    core = FavorCore(features=5, redraw_every=every)
    head = replace(config.model.head, attention=(AttentionConfig(core),))
    return replace(config, model=replace(config.model, head=head))


def test_features_are_drawn_anew_as_often_as_the_recipe_says_and_alike_in_a_resumed_run(run_config, tmp_path):
    config, place = redrawing(run_config, 2), "head.blocks.1.attention.core.directions"
    train(config, tmp_path / "whole", stop=after(3))
    drawn = state_of(tmp_path / "whole")["model"][place]
    assert not drawn.equal(initial_checkpoint(config)[0].model.state_dict()[place])
    train(config, tmp_path / "whole")
    train(config, tmp_path / "resumed", stop=after(4))  # just before a draw
    assert state_of(tmp_path / "resumed")["model"][place].equal(drawn)
    torch.manual_seed(99)
    train(config, tmp_path / "resumed")
    assert_same(state_of(tmp_path / "resumed"), state_of(tmp_path / "whole"))
    assert not state_of(tmp_path / "whole")["model"][place].equal(drawn)


def test_the_average_has_the_features_of_the_weights(run_config, tmp_path):
    config, place = redrawing(run_config, 2), "head.blocks.1.attention.core.directions"
    train(config, tmp_path)
    assert state_of(tmp_path)["average"][place].equal(state_of(tmp_path)["model"][place])


def test_features_are_never_drawn_anew_unless_the_recipe_says_so(run_config, tmp_path):
    config, place = redrawing(run_config, 0), "head.blocks.1.attention.core.directions"
    train(config, tmp_path)
    assert state_of(tmp_path)["model"][place].equal(initial_checkpoint(config)[0].model.state_dict()[place])


def test_a_model_whose_layers_remember_is_not_trained_with_a_speaker_cache(run_config, tmp_path):
    attention = AttentionConfig(memory=TransformerXLMemory(frames=3, chunk_frames=5))
    head = replace(run_config.model.head, attention=(attention,))
    first, last = run_config.stages
    stages = (first, replace(last, streamed_probability=0.5))
    config = replace(run_config, model=replace(run_config.model, head=head), stages=stages)
    with pytest.raises(ConfigError, match="layers of this one have states"):
        train(config, tmp_path)


def test_another_seed_is_another_run(run_config, tmp_path):
    train(run_config, tmp_path / "one", stop=after(1))
    train(replace(run_config, seed=4), tmp_path / "two", stop=after(1))
    assert log_of(tmp_path / "one") != log_of(tmp_path / "two")


def test_training_leaves_the_global_generator_alone(run_config, tmp_path):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    train(run_config, tmp_path, stop=after(2))
    assert torch.rand(1).equal(expected)


@pytest.mark.parametrize("warmup", [2, 6])
def test_a_warm_up_as_long_as_the_run_is_told(run_config, tmp_path, warmup):
    config = replace(run_config, optimizer=replace(run_config.optimizer, warmup_steps=warmup))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        train(config, tmp_path, stop=after(1))
    said = [str(each.message) for each in told if "are warm-up" in str(each.message)]
    assert len(said) == (warmup == 6)
    assert all(
        line.startswith("all 6 steps of the recipe are warm-up (warmup_steps of [optimizer] is 6)") for line in said
    )


@pytest.mark.parametrize("when", ["at once", "in a step"])
def test_a_worker_that_was_killed_is_one_sentence(run_config, tmp_path, monkeypatch, when):
    step = loop.take_step

    def kill(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def kill_others(*arguments: Any) -> Any:
        found = step(*arguments)
        for worker in multiprocessing.active_children():
            os.kill(worker.pid or 0, signal.SIGKILL)
            worker.join()
        time.sleep(0.1)
        return found

    if when == "at once":
        monkeypatch.setattr(Batches, "__getitem__", kill)
    else:
        monkeypatch.setattr(loop, "take_step", kill_others)
    with pytest.raises(InputError, match=r"a process that prepares batches was killed.*lower 'workers'"):
        train(replace(run_config, workers=1), tmp_path)


@pytest.mark.parametrize("where", [".", "model"])
def test_a_model_that_no_run_has_left_there_stays(run_config, tmp_path, where):
    checkpoint.save(tmp_path / where, small_model(small_config()), licence="MIT")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"is not from a run, and would be replaced: give another folder"):
        train(run_config, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    with pytest.raises(InputError, match="is a file: give a folder"):
        train(run_config, tmp_path / where / "config.json")


def _hold(folder: Path, held: Any) -> None:
    with locked(folder):
        held.set()
        time.sleep(600)


def test_a_folder_that_is_locked_is_made_and_removed_if_nothing_is_written(tmp_path):
    for _ in range(2):
        with locked(tmp_path / "new" / "run"):
            assert (tmp_path / "new" / "run").is_dir()
        assert not (tmp_path / "new" / "run").exists()
    with locked(tmp_path / "new"):
        assert list((tmp_path / "new").iterdir())
    assert not list((tmp_path / "new").iterdir())  # one that was there before stays


def test_two_runs_do_not_write_to_one_folder(run_config, tmp_path, whole):
    spawning = multiprocessing.get_context("spawn")
    held = spawning.Event()
    other = spawning.Process(target=_hold, args=(tmp_path, held))
    other.start()
    try:
        assert held.wait(60)
        with pytest.raises(InputError, match=r"another run is writing to .*: wait until it ends, or give another"):
            train(run_config, tmp_path)
        assert not (tmp_path / "log.jsonl").exists()
    finally:
        other.kill()  # which leaves it no time to clean up
        other.join()
    train(run_config, tmp_path)
    assert_same(state_of(tmp_path), state_of(whole))


@pytest.mark.skipif(sys.platform == "win32", reason="it has no flock")
def test_a_file_system_without_locks_is_refused_by_name(run_config, tmp_path, monkeypatch):
    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    out = tmp_path / "run"
    with pytest.raises(InputError) as caught:
        train(run_config, out)
    assert not out.exists()
    assert str(caught.value) == f"cannot lock {out}: No locks available (choose a path on another file system)"


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_has_nothing_to_read_leaves_nothing(run_config, tmp_path, there):
    out = tmp_path / "run"
    if there:
        out.mkdir()
    with pytest.raises(InputError, match=r"segments\.tsv is missing"):
        train(replace(run_config, data=replace(run_config.data, bank=str(tmp_path / "none"))), out)
    assert out.exists() == there
    assert list(out.rglob("*")) == []


def test_a_path_of_a_recipe_and_an_unknown_device_are_refused(run_config, tmp_path):
    with pytest.raises(
        InputError, match=r"train needs a TrainConfig, got str: TrainConfig\.read\(path\) reads a recipe"
    ):
        train("recipe.toml", tmp_path / "run")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="there is no device 'gpu'; choose auto, cpu, cuda or mps"):
        train(run_config, tmp_path / "run", device="gpu")
    assert not (tmp_path / "run").exists()


def test_the_model_it_leaves_is_the_average(run_config, tmp_path):
    model, _ = checkpoint.load(train(run_config, tmp_path, stop=after(1)))
    state, name = state_of(tmp_path), "head.out.weight"
    assert_same(dict(model.state_dict()), dict(state["average"]))
    begun = initial_checkpoint(run_config)[0].model.state_dict()[name]
    assert not begun.equal(state["model"][name])
    torch.testing.assert_close(model.state_dict()[name], begun.lerp(state["model"][name], 9 / 11))


def test_the_log_says_what_each_step_did(run_config, tmp_path):
    lines: list[dict[str, float]] = []
    begun = time.perf_counter()
    train(run_config, tmp_path, stop=after(4), report=lines.append)
    assert sum(line["seconds"] for line in lines) < time.perf_counter() - begun
    assert [{key: value for key, value in line.items() if key != "seconds"} for line in lines] == log_of(tmp_path)
    for line in lines:
        mixed = line["output"] + run_config.loss.deep_weight * line["estimates"]
        assert line["loss"] == pytest.approx(mixed, rel=1e-5)
        assert line["voices"] == 0
        assert line["seconds"] > 0
    assert [line["audio_s"] for line in lines] == [4.0, 4.0, 4.0, 3.0]


def test_bf16_trains_to_about_the_same_loss(run_config, tmp_path):
    train(run_config, tmp_path / "whole", stop=after(2))
    train(replace(run_config, precision="bf16"), tmp_path / "half", stop=after(2))
    losses = [[line["loss"] for line in log_of(tmp_path / run)] for run in ("whole", "half")]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert losses[0] != losses[1]

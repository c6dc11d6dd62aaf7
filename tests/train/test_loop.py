"""Training: resumed runs are bit-identical, failures are survived, and the log is complete."""

import copy
import json
import multiprocessing
import os
import shutil
import signal
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
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.train import TrainConfig
from sortformer.data import Batches
from sortformer.errors import ConfigError, InputError
from sortformer.train import loop, train
from sortformer.train.initial import initial_checkpoint
from sortformer.train.lock import locked
from sortformer.train.state import TrainState
from sortformer.train.step import take_step
from tests.data.corpora import corpus
from tests.small_models import small_config, small_model
from tests.train.runs import after, assert_same, log_of, state_of, write_voice_table


@pytest.fixture(scope="module")
def whole(run_config, tmp_path_factory) -> Path:
    """An uninterrupted run of all six steps."""
    folder = tmp_path_factory.mktemp("whole")
    train(run_config, folder)
    return folder


@pytest.mark.parametrize(("workers", "taught"), [(0, False), (1, True)])
def test_a_resumed_run_ends_with_the_bits_of_one_that_was_not(workers, taught, run_config, tmp_path):
    config = replace(run_config, workers=workers)
    if taught:
        config = write_voice_table(tmp_path / "voices.npz", config)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "resumed", stop=after(3))
    assert state_of(tmp_path / "resumed")["step"] == 3
    torch.manual_seed(99)  # other random numbers are drawn in between
    train(config, tmp_path / "resumed")
    assert_same(state_of(tmp_path / "resumed"), state_of(tmp_path / "whole"))
    assert log_of(tmp_path / "resumed") == log_of(tmp_path / "whole")
    assert [line["step"] for line in log_of(tmp_path / "whole")] == [1, 2, 3, 4, 5, 6]
    models = [(tmp_path / run / "model/model.safetensors").read_bytes() for run in ("resumed", "whole")]
    assert models[0] == models[1]


def test_workers_change_no_bit(run_config, tmp_path, whole):
    train(replace(run_config, workers=1), tmp_path)
    assert_same(state_of(tmp_path), state_of(whole))


def test_real_recordings_alone_train_evaluate_and_resume(run_config, tmp_path):
    manifest = str(corpus(tmp_path, {"a": (9.0, ((0.5, 4.0, "ann"), (3.0, 6.0, "bob")))}))
    data = DataConfig(recordings=(RecordingsConfig(manifest),), dev=manifest)
    config = replace(run_config, data=data, evaluate_conversations=2)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "resumed", stop=after(3))
    train(config, tmp_path / "resumed")
    assert_same(state_of(tmp_path / "resumed"), state_of(tmp_path / "whole"))
    assert 0 < log_of(tmp_path / "whole")[-1]["der"] < 3


def test_a_teacher_needs_a_bank(run_config, tmp_path):
    manifest = str(corpus(tmp_path, {"a": (9.0, ((0.5, 4.0, "ann"),))}))
    config = write_voice_table(tmp_path / "voices.npz", run_config)
    with pytest.raises(ConfigError, match="a teacher needs a bank of voices"):
        train(replace(config, data=DataConfig(recordings=(RecordingsConfig(manifest),))), tmp_path / "run")


def test_a_run_that_is_to_stop_at_once_takes_no_step(run_config, tmp_path):
    train(run_config, tmp_path, stop=after(0))
    assert not (tmp_path / "log.jsonl").exists()


def test_a_run_that_was_killed_takes_its_unsaved_steps_again(run_config, tmp_path, whole):
    train(replace(run_config, checkpoint_every=2), tmp_path / "killed", stop=after(4))
    with (tmp_path / "killed/log.jsonl").open("a") as log:
        log.write(json.dumps({"step": 5, "loss": 0.1}) + "\n" + '{"step": 6, "lo')
    train(run_config, tmp_path / "killed")
    assert log_of(tmp_path / "killed") == log_of(whole)


@pytest.mark.parametrize(("place", "writer"), [(checkpoint, "save"), (TrainState, "save")])
def test_a_run_that_was_killed_while_it_saved_leaves_the_model_of_its_last_step(
    place, writer, run_config, tmp_path, monkeypatch, whole
):
    train(run_config, tmp_path / "killed", stop=after(4))

    def kill(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, writer, kill)
        with pytest.raises(KeyboardInterrupt):
            train(run_config, tmp_path / "killed")
    model, _ = checkpoint.load(train(run_config, tmp_path / "killed"))
    assert_same(dict(model.state_dict()), dict(checkpoint.load(whole / "model")[0].state_dict()))
    assert_same(state_of(tmp_path / "killed"), state_of(whole))


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
    stages = tuple(replace(stage, streamed_probability=0.5) for stage in run_config.stages)
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


def test_a_finished_run_stays_as_it_is(run_config, tmp_path, whole):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    before = state_of(tmp_path), log_of(tmp_path), (tmp_path / "config.json").read_bytes()
    with pytest.warns(UserWarning, match="had already done 6 of 4 steps: there was nothing to train"):
        assert train(replace(run_config, steps=4), tmp_path) == tmp_path / "model"
    assert_same(state_of(tmp_path), before[0])
    assert (log_of(tmp_path), (tmp_path / "config.json").read_bytes()) == before[1:]


def test_other_data_than_before_are_named(run_config, tmp_path):
    bank = shutil.copytree(run_config.data.bank, tmp_path / "bank")
    config = replace(run_config, data=replace(run_config.data, bank=str(bank), cache=None))
    train(config, tmp_path / "run", stop=after(2))
    segments = (bank / "segments.tsv").read_text().splitlines(keepends=True)
    (bank / "segments.tsv").write_text("".join(segments[:1] + segments[2:]))
    with pytest.warns(UserWarning, match=r"continues from step 2 with a changed recipe: data\.content$"):
        train(config, tmp_path / "run")
    (bank / "segments.tsv").write_text("".join(segments))
    with pytest.warns(UserWarning, match=r"nothing to train, although the contents of \[data\] have changed$"):
        train(config, tmp_path / "run")


def test_other_settings_than_before_are_named(run_config, tmp_path, recwarn):
    train(run_config, tmp_path, stop=after(2))
    train(run_config, tmp_path, stop=after(3))
    assert not [each for each in recwarn if "changed recipe" in str(each.message)]
    other = replace(run_config, checkpoint_every=1, optimizer=replace(run_config.optimizer, learning_rate=0.5))
    named = r"continues from step 3 with a changed recipe: checkpoint_every, optimizer\.learning_rate$"
    with pytest.warns(UserWarning, match=named):
        train(other, tmp_path, stop=after(4))


def test_the_model_of_a_finished_run_is_written_anew_where_it_is_gone(run_config, tmp_path, whole):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "model")
    with pytest.warns(UserWarning, match="nothing to train"):
        train(run_config, tmp_path)
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "model" / name).read_bytes() == (whole / "model" / name).read_bytes()


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


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_has_nothing_to_read_leaves_nothing(run_config, tmp_path, there):
    out = tmp_path / "run"
    if there:
        out.mkdir()
    with pytest.raises(InputError):
        train(replace(run_config, data=replace(run_config.data, bank=str(tmp_path / "none"))), out)
    assert out.exists() == there
    assert list(out.rglob("*")) == []


@pytest.mark.filterwarnings("ignore:.*no commercial use")
@pytest.mark.parametrize("change", ["licence", "postprocess", "weights", "config"])
def test_a_run_goes_on_from_the_model_that_it_began_as(run_config, tmp_path, change):
    config = small_config({}, {"num_slots": 2})
    model, other = small_model(config), config
    first = {"licence": "MIT", "postprocess": PostprocessConfig(onset=0.3)}
    checkpoint.save(tmp_path / "one", model, **first)
    second = first | {"licence": {"licence": "CC-BY-NC-4.0"}, "postprocess": {"postprocess": None}}.get(change, {})
    if change == "config":
        other = replace(config, labelling="nemo" if config.labelling == "cover" else "cover")
    with torch.no_grad():
        changed = type(model)(other)
        changed.load_state_dict(model.state_dict())
        if change == "weights":
            changed.head.out.bias += 1
    checkpoint.save(tmp_path / "two", changed, **second)
    begun = replace(run_config, model=None, init=str(tmp_path / "one"))
    train(replace(begun, checkpoint_every=1), tmp_path / "run", stop=after(1))
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="did not start from the model of this recipe"):
        train(replace(begun, init=str(tmp_path / "two")), tmp_path / "run")
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    (tmp_path / "one").rename(tmp_path / "moved")
    train(replace(begun, init=str(tmp_path / "moved")), tmp_path / "run", stop=after(2))


def test_the_model_it_leaves_is_the_average(whole):
    model, _ = checkpoint.load(whole / "model")
    state = state_of(whole)
    assert_same(dict(model.state_dict()), dict(state["average"]))
    assert not model.state_dict()["head.out.weight"].equal(state["model"]["head.out.weight"])


def test_the_log_says_what_each_step_did(run_config, tmp_path):
    lines: list[dict[str, float]] = []
    train(run_config, tmp_path, stop=after(4), report=lines.append)
    assert [{key: value for key, value in line.items() if key != "seconds"} for line in lines] == log_of(tmp_path)
    for line in lines:
        mixed = line["output"] + run_config.loss.deep_weight * line["estimates"]
        assert line["loss"] == pytest.approx(mixed, rel=1e-5)
        assert line["voices"] == 0
        assert line["seconds"] > 0
    assert [line["audio_s"] for line in lines] == [4.0, 4.0, 4.0, 3.0]


def test_evaluations_come_when_due_and_at_the_end(run_config, tmp_path):
    config = replace(run_config, evaluate_conversations=1, evaluate_every=4)
    train(config, tmp_path)
    looks = [line for line in log_of(tmp_path) if "der" in line]
    assert [line["step"] for line in looks] == [4, 6]
    for line in looks:
        assert 0 <= line["der"] <= line["der_sorted"]
        assert line["der"] == pytest.approx(line["miss"] + line["false_alarm"] + line["confusion"])


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


@pytest.mark.parametrize("content", [b"", b"no state", "truncated"])
def test_a_damaged_state_is_one_sentence(content, run_config, tmp_path):
    train(run_config, tmp_path, stop=after(1))
    path = tmp_path / "state.pt"
    path.write_bytes(path.read_bytes()[:1000] if content == "truncated" else content)
    with pytest.raises(
        InputError, match=r"^cannot resume from .*state.pt, which is damaged; move it away to start again$"
    ):
        train(run_config, tmp_path)


def test_the_state_of_another_model_is_refused(run_config, tmp_path):
    train(run_config, tmp_path, stop=after(1))
    wider = replace(run_config, model=replace(run_config.model, head=replace(run_config.model.head, ff_dim=28)))
    with pytest.raises(
        InputError,
        match=r"did not start from the model of this recipe \(its recipe had another model\.head\.ff_dim\): ",
    ):
        train(wider, tmp_path)
    state = state_of(tmp_path)
    torch.save({name: value for name, value in state.items() if name != "begun_as"}, tmp_path / "state.pt")
    with pytest.raises(
        InputError, match=r"^cannot resume from .*state.pt, which belongs to another model or recipe; .*$"
    ):
        train(wider, tmp_path)
    with pytest.raises(InputError, match="which belongs to another model or recipe"):
        train(write_voice_table(tmp_path / "voices.npz", run_config), tmp_path)


@pytest.mark.parametrize("other", [torch.zeros(3), {"step": None}, {"lowest_der": []}])
def test_what_is_no_state_is_refused(other, run_config, tmp_path):
    train(run_config, tmp_path, stop=after(1))
    torch.save(state_of(tmp_path) | other if isinstance(other, dict) else other, tmp_path / "state.pt")
    with pytest.raises(InputError, match="which belongs to another model or recipe"):
        train(run_config, tmp_path)


def test_a_run_goes_on_whatever_its_config_has_become(run_config, tmp_path):
    train(run_config, tmp_path, stop=after(1))
    (tmp_path / "config.json").write_text("[" * 9_999)
    train(run_config, tmp_path, stop=after(2))
    assert state_of(tmp_path)["step"] == 2


def test_bf16_trains_to_about_the_same_loss(run_config, tmp_path):
    train(run_config, tmp_path / "whole", stop=after(2))
    train(replace(run_config, precision="bf16"), tmp_path / "half", stop=after(2))
    losses = [[line["loss"] for line in log_of(tmp_path / run)] for run in ("whole", "half")]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert losses[0] != losses[1]


def test_an_absent_bank_is_one_sentence(run_config, tmp_path):
    with pytest.raises(InputError, match=r"segments.tsv is missing"):
        train(replace(run_config, data=replace(run_config.data, bank=str(Path("nowhere")))), tmp_path)

"""Runs that go on: to the bit as if they had not stopped, with changes named, and only where that is possible."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from sortformer import checkpoint
from sortformer.config.data import DataConfig, RecordingsConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.train import train
from sortformer.train.state import TrainState
from tests.data.corpora import corpus
from tests.marks import LICENCE_IS_LIMITED, RECIPE_IS_CHANGED
from tests.small_models import small_config, small_model
from tests.train.runs import after, assert_same, log_of, state_of, write_voice_table


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


def test_real_recordings_alone_train_evaluate_and_resume(run_config, tmp_path):
    manifest = str(corpus(tmp_path, {"a": (9.0, ((0.5, 4.0, "ann"), (3.0, 6.0, "bob")))}))
    data = DataConfig(recordings=(RecordingsConfig(manifest),), dev=manifest)
    config = replace(run_config, data=data, evaluate_conversations=2)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "resumed", stop=after(3))
    train(config, tmp_path / "resumed")
    assert_same(state_of(tmp_path / "resumed"), state_of(tmp_path / "whole"))
    assert 0 < log_of(tmp_path / "whole")[-1]["der"] < 3


@RECIPE_IS_CHANGED
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


def test_a_finished_run_stays_as_it_is(run_config, tmp_path, whole):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    before = state_of(tmp_path), log_of(tmp_path), (tmp_path / "config.json").read_bytes()
    with pytest.warns(UserWarning, match=r"had already done 6 of 4 steps: there was nothing to train$"):
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


def test_nothing_has_changed_for_a_run_that_had_taken_no_step(run_config, tmp_path, recwarn):
    train(run_config, tmp_path, stop=after(0))
    train(replace(run_config, checkpoint_every=2), tmp_path, stop=after(1))
    assert not [each for each in recwarn if "changed recipe" in str(each.message)]


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


@RECIPE_IS_CHANGED
@LICENCE_IS_LIMITED
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

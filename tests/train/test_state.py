"""The state of a run: averaged weights by their formula, weight decay for matrices only, atomic files."""

import math
import re
from dataclasses import replace

import pytest
import torch

from sortformer.checkpoint import load
from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import RoutingCore
from sortformer.config.train import OptimizerConfig
from sortformer.errors import ConfigError, InputError
from sortformer.model import Sortformer
from sortformer.train import train
from sortformer.train.initial import initial_checkpoint
from sortformer.train.state import TrainState, parameter_groups
from sortformer.train.teacher import VoiceTeacher
from tests.full_disk import no_more_than
from tests.small_models import small_config, small_model
from tests.train.runs import after, assert_same, state_of

CPU = torch.device("cpu")


@pytest.fixture
def state() -> TrainState:
    return TrainState.start(small_model(small_config({"conv_norm": "batch"})), OptimizerConfig(), None, CPU)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.999])
def test_the_average_forgets_its_start_and_then_follows_the_decay(state, decay):
    name = "head.out.weight"
    expected = state.average.state_dict()[name].double()
    for step in range(1, 30):
        torch.nn.init.normal_(state.model.head.out.weight)
        state.step = step
        state.update_average(decay)
        kept = min(decay, (1 + step) / (10 + step))
        expected = kept * expected + (1 - kept) * state.model.head.out.weight.double()
    torch.testing.assert_close(state.average.state_dict()[name].double(), expected, atol=1e-5, rtol=0)


def test_counts_are_copied_into_the_average(state):
    norm = "encoder.blocks.0.convolution.norm"
    state.model.get_submodule(norm).num_batches_tracked.fill_(7)
    state.update_average(0.9)
    assert state.average.get_submodule(norm).num_batches_tracked == 7


def test_centroids_of_the_average_stay_of_length_one():
    """The mean of two is shorter, to varying degrees, which would bias the assignment of frames."""
    attention = AttentionConfig(RoutingCore(clusters=3, window_frames=4), position="none")
    state = TrainState.start(small_model(small_config(head={"attention": (attention,)})), OptimizerConfig(), None, CPU)
    (name, *_) = [name for name in state.model.state_dict() if name.endswith("centroids")]
    ours, mean = state.model.state_dict()[name], state.average.state_dict()[name]
    ours.copy_(ours.roll(1, dims=1))
    state.step = 100
    state.update_average(0.6)
    assert not torch.allclose(mean, ours)
    torch.testing.assert_close(mean.norm(dim=-1), torch.ones(mean.shape[:-1]))


def test_the_average_is_no_part_of_the_training(state):
    assert not state.average.training
    assert not any(parameter.requires_grad for parameter in state.average.parameters())
    trained = {id(parameter) for group in state.optimizer.param_groups for parameter in group["params"]}
    assert trained == {id(parameter) for parameter in state.model.parameters()}


def test_a_model_is_trained_whatever_mode_it_was_in():
    assert TrainState.start(small_model(small_config()).eval(), OptimizerConfig(), None, CPU).model.training


def test_the_projection_of_a_teacher_is_trained_too():
    teacher = VoiceTeacher(8, torch.eye(3))
    state = TrainState.start(small_model(small_config()), OptimizerConfig(), teacher, CPU)
    trained = {id(parameter) for group in state.optimizer.param_groups for parameter in group["params"]}
    assert {id(parameter) for parameter in teacher.parameters()} <= trained


def test_matrices_decay_and_vectors_do_not():
    model = Sortformer(small_config())
    decaying, free = parameter_groups([model], OptimizerConfig(weight_decay=0.3))
    assert (decaying["weight_decay"], free["weight_decay"]) == (0.3, 0.0)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    untouched = {names[id(parameter)] for parameter in free["params"]}
    assert {"head.encodings.0.gate", "head.out.bias", "encoder.blocks.0.norm.weight"} <= untouched
    assert len(decaying["params"]) + len(free["params"]) == len(names)


def test_a_save_that_fails_leaves_the_old_state(state, tmp_path, monkeypatch):
    state.save(tmp_path / "state.pt")
    before = (tmp_path / "state.pt").read_bytes()

    def killed(_, file):
        file.write(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            state.save(tmp_path / "state.pt")
    with no_more_than(20_000), pytest.raises(OSError, match="File too large") as caught:
        state.save(tmp_path / "state.pt")
    assert caught.value.filename == str(tmp_path / "state.pt")
    assert (tmp_path / "state.pt").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]


def test_a_resumed_run_has_the_optimiser_of_its_recipe(state, tmp_path):
    state.save(tmp_path / "state.pt")
    config = OptimizerConfig(weight_decay=0.3, betas=(0.5, 0.6))
    resumed = TrainState.start(small_model(small_config({"conv_norm": "batch"})), config, None, CPU)
    resumed.load(tmp_path / "state.pt")
    assert [group["weight_decay"] for group in resumed.optimizer.param_groups] == [0.3, 0.0]
    assert [group["betas"] for group in resumed.optimizer.param_groups] == [(0.5, 0.6)] * 2


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (["model.head.dim", "steps"], "its recipe had another model.head.dim"),
        (["seed"], "its recipe had another seed"),
        (["init"], "its recipe had another init"),
        (["simulation.noise", "simulation.num_slots"], "its recipe had another simulation.num_slots"),
        (["steps"], "other weights, post-processing or licence"),
    ],
)
def test_what_the_initial_model_depends_on_is_named(state, tmp_path, changed, why):
    state.begun_as = "one"
    state.save(tmp_path / "state.pt")
    state.begun_as = "two"
    with pytest.raises(InputError, match=re.escape(f"not start from the model of this recipe ({why}): ")):
        state.load(tmp_path / "state.pt", changed)


def test_a_state_of_an_older_version_is_resumed(state, tmp_path):
    state.step, state.lowest_der, state.begun_as = 5, 0.2, "one"
    state.save(tmp_path / "state.pt")
    saved = state_of(tmp_path)
    older = {name: value for name, value in saved.items() if name not in ("lowest_der", "begun_as", "trained")}
    torch.save(older, tmp_path / "state.pt")
    state.step = 0
    state.load(tmp_path / "state.pt")
    assert (state.step, state.lowest_der, state.begun_as) == (5, math.inf, "one")


@pytest.mark.parametrize("part", ["encoder.pre_encode", "encoder.blocks.0", "head"])
def test_what_is_frozen_stays_and_all_else_learns(part, run_config, tmp_path):
    assert run_config.model is not None
    encoder = replace(run_config.model.encoder, conv_norm="batch")
    config = replace(run_config, model=replace(run_config.model, encoder=encoder), frozen=(part,))
    model = initial_checkpoint(config)[0].model
    found = load(train(config, tmp_path / "run"))[0].state_dict()
    learned = state_of(tmp_path / "run")["model"]
    for name, values in model.state_dict().items():
        if name.startswith(f"{part}."):
            assert learned[name].equal(values), name
            assert found[name].equal(values), name
    changed = {name for name, values in model.named_parameters() if not learned[name].equal(values)}
    assert changed == {name for name, _ in model.named_parameters() if not name.startswith(f"{part}.")}


def test_what_is_frozen_stays_when_the_run_goes_on(run_config, tmp_path):
    config = replace(run_config, frozen=("encoder",))
    train(config, tmp_path / "stopped", stop=after(2))
    train(config, tmp_path / "stopped")
    train(config, tmp_path / "whole")
    assert_same(state_of(tmp_path / "stopped"), state_of(tmp_path / "whole"))


def test_what_was_frozen_has_to_stay_frozen(run_config, tmp_path):
    train(replace(run_config, frozen=("head.blocks.0",)), tmp_path / "run", stop=after(2))
    with pytest.raises(InputError, match="trained other parts of the model than 'frozen' leaves here"):
        train(replace(run_config, frozen=("head.blocks.1",)), tmp_path / "run")


@pytest.mark.parametrize("part", ["decoder", "encoder.blocks.7", ""])
def test_what_the_model_lacks_cannot_be_frozen(part, run_config, tmp_path):
    with pytest.raises(ConfigError, match=f"no part '{part}' to freeze; its parts are features, encoder, head"):
        train(replace(run_config, frozen=(part,)), tmp_path / "run")


def test_something_has_to_learn(run_config, tmp_path):
    with pytest.raises(ConfigError, match="the whole model is frozen"):
        train(replace(run_config, frozen=("encoder", "head")), tmp_path / "run")

"""The files of a run: what is kept, by which process, and what is not worth keeping."""

from pathlib import Path

import pytest
import torch

from sortformer.config.train import OptimizerConfig
from sortformer.errors import InputError
from sortformer.train.keeper import Keeper
from sortformer.train.state import TrainState
from tests.small_models import small_config, small_model

CPU = torch.device("cpu")


@pytest.fixture
def state() -> TrainState:
    return TrainState.start(small_model(small_config()), OptimizerConfig(), None, CPU)


def keeper(out: Path, writes: bool = True) -> Keeper:
    return Keeper(out, None, None, 0, writes)


def test_of_several_processes_only_the_first_writes(state, tmp_path):
    for name, writes in (("first", True), ("second", False)):
        kept, state.step = keeper(tmp_path / name, writes), state.step + 1
        kept.keep(state, 0)
        kept.look(state, 1 / state.step)
        assert kept.step == state.step
        assert state.lowest_der == 1 / state.step  # all processes know it
    assert {path.name for path in (tmp_path / "first").iterdir()} == {"best", "model", "state.pt"}
    assert not (tmp_path / "second").exists()


def test_a_model_with_an_output_that_is_not_finite_is_never_kept(state, tmp_path):
    with torch.no_grad():
        state.average.head.out.bias[0] = torch.nan
    kept = keeper(tmp_path)
    kept.look(state, 0.1)
    with pytest.raises(InputError, match="training has diverged"):
        kept.keep(state, 0)
    assert list(tmp_path.iterdir()) == []
    assert state.lowest_der > 0.1


def test_training_is_stuck_where_all_steps_since_the_last_state_were_skipped(state, tmp_path):
    kept = keeper(tmp_path)
    for step, passed_over in ((4, 3), (5, 1), (8, 2)):
        state.step = step
        kept.keep(state, passed_over)
        assert kept.step == step
    state.step = 10
    with pytest.raises(InputError, match=r"stuck: the gradients of the last 2 steps .* Lower the learning rate"):
        kept.keep(state, 2)
    assert kept.step == 8

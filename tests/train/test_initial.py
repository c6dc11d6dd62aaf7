"""Runs from a checkpoint of any format: its weights bit for bit, with added slots; all else is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sortformer import checkpoint
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.depth import StackedDepth, UniversalDepth
from sortformer.config.model import HeadConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.simulation import SimulationConfig
from sortformer.config.stream import SpeakerCacheConfig
from sortformer.config.train import TeacherConfig
from sortformer.errors import ConfigError, InputError
from sortformer.model import Sortformer
from sortformer.train import train
from sortformer.train.initial import initial_checkpoint, with_slots
from tests.checkpoint.goldens import GOLDEN, shared
from tests.small_models import SHAPES, small_config, small_model
from tests.train.runs import after, state_of, write_voice_table


def assert_kept(model: Sortformer, start: Sortformer) -> None:
    """Check that all weights of ``start`` are in ``model``, bit for bit, at the beginning of each axis."""
    grown = model.state_dict()
    assert grown.keys() == start.state_dict().keys()
    for name, weights in start.state_dict().items():
        assert grown[name][tuple(map(slice, weights.shape))].equal(weights), name


def asking(config, init, num_slots, model=None):
    """Return a run from a checkpoint, with conversations of so many slots."""
    simulation = SimulationConfig(num_slots=num_slots, speaker_weights=(0.5, 0.5))
    return replace(config, init=str(init), model=model, simulation=simulation)


def resized(config: ModelConfig, **changes) -> ModelConfig:
    return replace(config, head=replace(config.head, **changes))


@pytest.mark.parametrize("shape", SHAPES)
def test_new_slots_are_silent_and_leave_the_old_ones_alone(shape):
    model = small_model(SHAPES[shape])
    wider = with_slots(model, 5, seed=1).eval()
    assert wider.config == resized(model.config, num_slots=5)
    assert_kept(wider, model)
    with torch.inference_mode():
        wave = torch.randn(2, 32_000, generator=torch.Generator().manual_seed(0))
        before, after = model(wave), wider(wave)
    assert after.probs[..., 3:].max() < 0.05
    tolerance = 1e-5 if model.config.head.permutation in ("hard", "none") else 0.1
    torch.testing.assert_close(after.logits[..., :3], before.logits, atol=tolerance, rtol=0)
    for old, new in zip(before.estimates, after.estimates, strict=True):
        assert new.shape[2] == 5
        if tolerance < 0.1:
            torch.testing.assert_close(new[..., :3], old, atol=tolerance, rtol=0)


def test_new_rows_depend_on_the_seed_alone():
    model = small_model(small_config(head={"kernel": "learned"}))
    torch.manual_seed(5)
    one, same, other = with_slots(model, 4, seed=1), with_slots(model, 4, seed=1), with_slots(model, 4, seed=2)
    name = "head.encodings.0.table"
    assert one.state_dict()[name].shape == (4, 16)
    assert one.state_dict()[name].equal(same.state_dict()[name])
    assert not one.state_dict()[name].equal(other.state_dict()[name])


@pytest.mark.parametrize(
    ("source", "slots"),
    [("tiny_v1.nemo", 2), ("tiny_nemotron3", 2), ("tiny_nemotron3", 0), pytest.param("v2", 0, marks=pytest.mark.data)],
)
def test_training_starts_from_what_nvidia_published(source, slots, run_config, tmp_path):
    path = shared("models/tiny_v2.nemo") if source == "v2" else GOLDEN / source
    start, _ = checkpoint.load(path)
    config = asking(run_config, path, start.config.head.num_slots + slots)
    initial = initial_checkpoint(config)[0].model
    assert initial.config == resized(start.config, num_slots=start.config.head.num_slots + slots)
    assert_kept(initial, start)
    lines: list[dict[str, float]] = []
    trained, _ = checkpoint.load(train(config, tmp_path, stop=after(2), report=lines.append))
    assert trained.config == initial.config
    assert all(torch.isfinite(torch.tensor(line["loss"])) for line in lines)
    assert not trained.head.out.weight.equal(initial.head.out.weight)
    assert json.loads((tmp_path / "config.json").read_text())["model"]["labelling"] == "nemo"


def test_the_models_own_table_may_stand_in_the_recipe(run_config, tmp_path):
    start = small_model(run_config.model)
    checkpoint.save(tmp_path / "start", start)
    for slots in (2, 3):
        config = asking(run_config, tmp_path / "start", slots, resized(run_config.model, num_slots=slots))
        assert_kept(initial_checkpoint(config)[0].model, start)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ff_dim": 28}, r"head\.ff_dim is 28, not 24"),
        ({"permutation": "none", "gate": "channel"}, r"permutation is 'none', not 'hard'; .*gate is 'channel'"),
        ({"estimate_layers": (1,)}, r"head\.estimate_layers is \[1\], not \[1, 2\]"),
        ({"dropout": 0.2}, r"head\.dropout is 0\.2, not 0\.1"),
    ],
)
def test_any_other_difference_is_refused_by_name(changes, reason, run_config, tmp_path):
    checkpoint.save(tmp_path, Sortformer(run_config.model))
    config = asking(run_config, tmp_path, 3, resized(run_config.model, num_slots=3, **changes))
    with pytest.raises(InputError, match=f"table differs from the model in .*{reason}"):
        initial_checkpoint(config)


def test_a_table_without_a_part_that_the_weights_have_is_refused_by_name_too(run_config, tmp_path):
    halting = resized(run_config.model, depth=UniversalDepth(halting=True), permutation="none", estimate_layers=())
    checkpoint.save(tmp_path, Sortformer(halting))
    plain = resized(halting, depth=StackedDepth())
    with pytest.raises(InputError, match=r"depth\.kind is 'stacked', not 'universal'; .*halting is None, not True"):
        initial_checkpoint(asking(run_config, tmp_path, 2, plain))


def test_a_table_with_a_part_that_the_weights_lack_is_refused_by_name_too(run_config, tmp_path):
    checkpoint.save(tmp_path, Sortformer(run_config.model))
    caching = replace(run_config.model, speaker_cache=SpeakerCacheConfig(silence_frames=1))
    with pytest.raises(InputError, match=r"speaker_cache\.silence_frames is 1, not None"):
        initial_checkpoint(asking(run_config, tmp_path, run_config.model.head.num_slots, caching))


def test_slots_are_not_taken_away(run_config):
    with pytest.raises(InputError, match=r"has 8 slots, but num_slots of the recipe is 4: slots can be added, not"):
        initial_checkpoint(asking(run_config, GOLDEN / "tiny_nemotron3", 4))


def test_what_does_not_load_is_one_sentence(run_config):
    with pytest.raises(InputError, match="there is no model nowhere"):
        initial_checkpoint(asking(run_config, "nowhere", 2))


def test_without_a_table_or_weights_it_is_our_default_with_the_slots_of_the_simulation(run_config):
    config = replace(run_config, model=None, simulation=SimulationConfig(num_slots=6))
    assert initial_checkpoint(config)[0].model.config == ModelConfig(head=HeadConfig(num_slots=6))


def test_a_licence_stays_with_the_weights(run_config, tmp_path):
    checkpoint.save(tmp_path / "start", Sortformer(run_config.model), licence="CC-BY-NC-4.0")
    with pytest.warns(UserWarning, match="no commercial use"):
        model = train(asking(run_config, tmp_path / "start", 2), tmp_path / "run", stop=after(1))
    assert json.loads((Path(model) / "config.json").read_text())["licence"] == "CC-BY-NC-4.0"


def test_a_run_with_added_slots_resumes(run_config, tmp_path):
    checkpoint.save(tmp_path / "start", small_model(run_config.model))
    config = asking(run_config, tmp_path / "start", 3)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "resumed", stop=after(2))
    train(config, tmp_path / "resumed")
    whole, resumed = (state_of(tmp_path / run)["model"] for run in ("whole", "resumed"))
    assert all(resumed[name].equal(weights) for name, weights in whole.items())


def test_what_compares_frames_is_refused_where_the_output_is_finer(run_config, tmp_path):
    taught = write_voice_table(tmp_path / "voices.npz", run_config).teacher
    assert isinstance(taught, TeacherConfig)
    config = asking(run_config, GOLDEN / "tiny_nemotron3", 8)
    paired = replace(config.loss, voice_pairs_weight=1.0)
    for refused in (replace(config, teacher=taught), replace(config, loss=paired)):
        with pytest.raises(ConfigError, match="output frames of this model are shorter"):
            train(refused, tmp_path / "run")


def test_the_post_processing_of_the_start_is_kept(run_config, tmp_path):
    settings = PostprocessConfig(onset=0.7, clustering=ClusteringConfig(0.42))
    checkpoint.save(tmp_path / "start", small_model(small_config()), settings)
    _, kept = checkpoint.load(train(asking(run_config, tmp_path / "start", 3), tmp_path / "run", stop=after(1)))
    assert kept == settings

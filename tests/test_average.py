"""Averaging: the mean of the weights, an unchanged model for equal ones, and no mixing of different models."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sortformer import checkpoint
from sortformer.average import average
from sortformer.checkpoint.loading import read
from sortformer.config.attention import AttentionConfig
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.cores import FavorCore, RoutingCore
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from tests.small_models import SHAPES, small_config, small_model


def saved(folder: Path, shape: str = "xl-batch-norm", seed: int = 0, **options: object) -> Path:
    model = small_model(SHAPES[shape], seed)
    for name, counter in model.state_dict().items():
        if not counter.is_floating_point() and name.endswith("num_batches_tracked"):
            counter.fill_(seed)
    checkpoint.save(folder, model, **options)  # pyright: ignore[reportArgumentType]
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load(folder)[0].state_dict()


def test_every_weight_is_the_mean_and_every_counter_the_last(tmp_path: Path):
    sources = [saved(tmp_path / str(seed), seed=seed) for seed in (1, 2, 4)]
    average(sources, tmp_path / "mean")
    found, parts = weights(tmp_path / "mean"), [weights(source) for source in sources]
    counters = [name for name, tensor in found.items() if not tensor.is_floating_point()]
    assert counters
    for name, tensor in found.items():
        if name in counters:
            assert torch.equal(tensor, parts[-1][name])
        else:
            expected = torch.stack([part[name].double() for part in parts]).mean(0)
            torch.testing.assert_close(tensor.double(), expected, rtol=1e-6, atol=1e-7)


def test_the_mean_of_one_and_the_same_is_the_same_bits(tmp_path: Path):
    source = saved(tmp_path / "one", licence="MIT")
    average([source] * 3, tmp_path / "mean")
    assert read(tmp_path / "mean").licence == "MIT"
    ours, theirs = weights(source), weights(tmp_path / "mean")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_random_features_are_those_of_the_last(tmp_path: Path):
    """A mean of random draws would not be a valid draw."""
    core = AttentionConfig(FavorCore(features=6))
    sources = []
    for seed in (1, 2):
        checkpoint.save(tmp_path / str(seed), small_model(small_config(head={"attention": (core,)}), seed))
        sources.append(tmp_path / str(seed))
    average(sources, tmp_path / "mean")
    found, (first, last) = weights(tmp_path / "mean"), map(weights, sources)
    names = [name for name in found if name.endswith("directions")]
    assert len(names) == 3
    for name in names:
        assert not first[name].equal(last[name])
        assert found[name].equal(last[name])


def test_centroids_stay_of_length_one(tmp_path: Path):
    """The mean of two is shorter, to varying degrees, which would bias the assignment of frames."""
    core = AttentionConfig(RoutingCore(clusters=3, window_frames=4), position="none")
    sources = []
    for seed in (1, 2):
        checkpoint.save(tmp_path / str(seed), small_model(small_config(head={"attention": (core,)}), seed))
        sources.append(tmp_path / str(seed))
    average(sources, tmp_path / "mean")
    found = weights(tmp_path / "mean")
    names = [name for name in found if name.endswith("centroids")]
    assert len(names) == 3
    for name in names:
        torch.testing.assert_close(found[name].norm(dim=-1), torch.ones(found[name].shape[:-1]))


def test_post_processing_stays_as_far_as_all_agree(tmp_path: Path):
    settings = PostprocessConfig(onset=0.3, clustering=ClusteringConfig(0.4))
    one, two = (saved(tmp_path / name, postprocess=settings) for name in ("one", "two"))
    other = saved(tmp_path / "other", postprocess=replace(settings, onset=0.4))
    average([one, two], tmp_path / "same")
    with pytest.warns(UserWarning, match="the default onset: tune it"):
        average([one, two, other], tmp_path / "mixed")
    with pytest.warns(UserWarning, match="the default onset: tune it"):
        average([other, one, two], tmp_path / "first")
    assert checkpoint.load(tmp_path / "same")[1] == settings
    assert checkpoint.load(tmp_path / "first")[1] == PostprocessConfig(clustering=ClusteringConfig(0.4))
    assert checkpoint.load(tmp_path / "mixed")[1] == PostprocessConfig(clustering=ClusteringConfig(0.4))


def test_different_models_licences_and_single_ones_are_refused(tmp_path: Path):
    one, other = saved(tmp_path / "one"), saved(tmp_path / "other", "local")
    with pytest.raises(InputError, match=r"one and .*other are different models: encoder\.\w+ is"):
        average([one, other], tmp_path / "mean")
    checkpoint.save(tmp_path / "nearly", small_model(replace(checkpoint.load(one)[0].config, labelling="nemo")))
    with pytest.raises(InputError, match="are different models: labelling is 'cover' and 'nemo'"):
        average([one, tmp_path / "nearly"], tmp_path / "mean")
    with pytest.raises(InputError, match="different licences"):
        average([one, saved(tmp_path / "bought", licence="MIT")], tmp_path / "mean")
    with pytest.raises(InputError, match=r"at least two models, got only .*one"):
        average([one], tmp_path / "mean")
    with pytest.raises(InputError, match="at least two models, got none"):
        average([], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()

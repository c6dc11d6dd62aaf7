"""Streamed training shows a model exactly the frames of a stream, with their labels."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.config.train import LossConfig, OptimizerConfig, TrainConfig
from sortformer.data import Batches
from sortformer.errors import ConfigError
from sortformer.losses import hybrid_loss
from sortformer.model import Sortformer
from sortformer.streaming.protocol import Chunk
from sortformer.streaming.state import start
from sortformer.streaming.step import step
from sortformer.train import train
from sortformer.train.processes import Processes
from sortformer.train.state import TrainState
from sortformer.train.step import take_step
from sortformer.train.streamed import check_streams, draw_stream, streamed
from tests.small_models import SHAPES, small_config, small_model
from tests.train.runs import after, log_of, state_of

IN_ORDER = torch.arange(3)
CONFIG = StreamConfig(7, 2, fifo_frames=5, speaker_cache=SpeakerCacheConfig(frames=14))
FEW = StreamConfig(2, right_context_frames=0, fifo_frames=1, speaker_cache=SpeakerCacheConfig(frames=8))


@pytest.fixture
def model() -> Sortformer:
    return small_model(SHAPES["shaw-soft"])


@pytest.fixture
def seen(model: Sortformer, monkeypatch: pytest.MonkeyPatch) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the frames and masks of each call of the model, whose output is random."""
    shown = []

    def look(emb: torch.Tensor, valid: torch.Tensor) -> SimpleNamespace:
        shown.append((emb, valid))
        return SimpleNamespace(probs=torch.rand(*emb.shape[:2], 3).mul(valid[..., None]))

    monkeypatch.setattr(model, "forward_frames", look)
    return shown


def features(model: Sortformer, batch: int = 2, frames: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    feats = torch.randn(batch, frames, model.config.features.num_mels, generator=torch.Generator().manual_seed(3))
    return feats, torch.tensor([frames, frames - 90][:batch])


def test_with_no_past_and_a_chunk_of_all_it_is_the_whole_recording(model):
    feats, lengths = features(model)
    whole = model.forward_features(feats, lengths)
    activity = torch.rand(whole.logits.shape).round()
    shown, labels, _ = streamed(model, feats, lengths, activity, StreamConfig(50), torch.zeros(2), IN_ORDER)
    torch.testing.assert_close(shown.probs, whole.probs)
    assert labels[whole.valid].equal(activity[whole.valid])


def test_it_is_the_second_step_of_a_stream(model):
    feats, lengths = features(model, batch=1)
    emb, frames = model.encoder.pre_encode(feats, lengths)
    heard, none = torch.tensor([30]), torch.zeros(1, dtype=torch.int64)
    state, _ = step(model, CONFIG, start(CONFIG, 16, 3), Chunk(emb[:, :30], none, heard, none))
    assert state.compressed.all()
    chunk = Chunk(emb[:, 30:39], none, torch.tensor([7]), torch.tensor([2]))
    _, expected = step(model, CONFIG, state, chunk)
    share = (heard + 0.5) / frames
    shown, _, _ = streamed(model, feats, lengths, torch.zeros(1, int(frames), 3), CONFIG, share, IN_ORDER)
    torch.testing.assert_close(shown.probs[:, 14 + 5 : 14 + 5 + 7], expected)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_every_frame_keeps_its_labels(model, order, seen):
    feats, lengths = features(model)
    emb, _ = model.encoder.pre_encode(feats, lengths)
    share = torch.tensor([0.7, 0.6])
    _, labels, _ = streamed(model, feats, lengths, (emb[..., :3] > 0).float(), CONFIG, share, torch.tensor(order))
    shown, valid = seen[1]
    silence = CONFIG.speaker_cache.silence_frames
    assert valid.sum(dim=1).equal(torch.tensor([14 + 5 + 9, 14 + 5 + 9]))
    same = (labels == (shown[..., :3] > 0).float()).all(dim=2)
    assert (~same & valid).sum(dim=1).le(3 * silence).all()  # the silence after each slot belongs to no speaker
    assert same[:, 14:].logical_or(~valid[:, 14:]).all()


def test_a_stream_ends_with_its_recording(model, seen):
    share = torch.tensor([0.97, 0.5])  # of 50 and of 39 frames
    streamed(model, *features(model), torch.zeros(2, 50, 3), CONFIG, share, IN_ORDER)
    assert seen[1][1].sum(dim=1).equal(torch.tensor([14 + 5 + 2, 14 + 5 + 9]))


def test_every_frame_keeps_its_counts(model, seen):
    feats, lengths = features(model)
    emb, _ = model.encoder.pre_encode(feats, lengths)
    share, counted = torch.tensor([0.7, 0.6]), emb[..., :3].softmax(dim=2)
    _, labels, counts = streamed(model, feats, lengths, torch.zeros(2, 50, 3), CONFIG, share, IN_ORDER, counted)
    shown, valid = seen[1]
    assert labels.shape == (2, shown.shape[1], 3)
    assert counts is not None
    torch.testing.assert_close(counts.sum(dim=2), torch.ones(counts.shape[:2]))
    same = (counts - shown[..., :3].softmax(dim=2)).abs().amax(dim=2) < 1e-5
    assert same[:, 14:].logical_or(~valid[:, 14:]).all()
    assert same[:, :14].any(dim=1).all()  # the others are silence, which is a mean of frames


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_the_speakers_stand_in_the_cache_in_the_order_that_was_asked_for(model, order, monkeypatch):
    feats, lengths = features(model, batch=1)
    activity = torch.eye(3).repeat_interleave(10, dim=0).repeat(2, 1)[None, :50]  # each speaks for ten frames

    def know(emb: torch.Tensor, valid: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(probs=(0.1 + 0.8 * activity[:, : emb.shape[1]]) * valid[..., None])

    monkeypatch.setattr(model, "forward_frames", know)
    _, labels, _ = streamed(model, feats, lengths, activity, CONFIG, torch.full((1,), 0.61), torch.tensor(order))
    speakers = labels[0, :14].argmax(dim=1)[labels[0, :14].any(dim=1)]
    assert torch.unique_consecutive(speakers).tolist() == order


def test_silence_in_the_cache_has_the_labels_of_most_of_its_frames(model, monkeypatch):
    feats, lengths = features(model, batch=1)
    activity = torch.eye(3)[[0, 0, 1]].repeat(17, 1)[None, :50]
    monkeypatch.setattr(model, "forward_frames", lambda emb, _: SimpleNamespace(probs=torch.zeros(*emb.shape[:2], 3)))
    _, labels, _ = streamed(model, feats, lengths, activity, CONFIG, torch.full((1,), 0.61), IN_ORDER)
    assert labels[0, :14].equal(torch.eye(3)[[0] * 14])


def test_a_silence_that_was_learned_is_of_nobody(monkeypatch):
    model, shown = small_model(small_config({"learned_silence": True})), list[torch.Tensor]()

    def look(emb: torch.Tensor, _: torch.Tensor) -> SimpleNamespace:
        shown.append(emb)
        return SimpleNamespace(probs=torch.zeros(*emb.shape[:2], 3))

    monkeypatch.setattr(model, "forward_frames", look)
    several, share = torch.tensor([0.0, 0.0, 1.0]).expand(1, 50, 3), torch.full((1,), 0.61)
    _, labels, counts = streamed(model, *features(model, 1), torch.ones(1, 50, 3), CONFIG, share, IN_ORDER, several)
    silent = (shown[1] == model.encoder.silence).all(dim=2, keepdim=True)
    assert silent[:, :14].any()
    assert labels.equal((~silent).float().expand_as(labels))
    assert counts is not None
    assert counts.equal(torch.where(silent, torch.tensor([1.0, 0.0, 0.0]), several[:, :1]))


def test_gradients_reach_the_frames_of_the_cache(model):
    feats, lengths = features(model)
    feats.requires_grad_()
    output, _, _ = streamed(model, feats, lengths, torch.zeros(2, 50, 3), CONFIG, torch.full((2,), 0.7), IN_ORDER)
    output.logits[output.valid].sum().backward()
    touched = feats.grad.abs().sum(dim=(1, 2)) if feats.grad is not None else torch.zeros(2)
    assert touched.gt(0).all()
    assert feats.grad[:, : 8 * 28].abs().sum() > 0


def test_weights_learn_where_autocast_keeps_what_it_has_cast(model, monkeypatch):
    """As up to torch 2.10: a cast of weights cached without gradient is reused where a gradient is needed."""
    kept: dict[int, torch.Tensor] = {}

    def cast(weights: torch.Tensor | None) -> torch.Tensor | None:
        if weights is None or not weights.is_leaf:
            return weights
        return kept.setdefault(id(weights), weights * 1)

    def caching(function: Any) -> Any:
        return lambda x, weights, bias=None, *rest: function(x, cast(weights), cast(bias), *rest)

    for name in ("linear", "conv1d", "conv2d"):
        monkeypatch.setattr(torch.nn.functional, name, caching(getattr(torch.nn.functional, name)))
    monkeypatch.setattr(torch, "clear_autocast_cache", kept.clear)
    feats, lengths = features(model)
    activity = torch.rand(2, 50, 3).round()
    output, labels, _ = streamed(model, feats, lengths, activity, CONFIG, torch.full((2,), 0.5), IN_ORDER)
    hybrid_loss(output.logits, labels, output.valid).backward()
    assert [name for name, weights in model.named_parameters() if weights.grad is None] == []


def test_what_is_drawn_covers_the_presets():
    drawn = [draw_stream(torch.Generator().manual_seed(seed), 4) for seed in range(200)]
    assert min(config.chunk_frames for config in drawn) <= 4
    assert max(config.chunk_frames for config in drawn) >= 300
    assert min(config.right_context_frames for config in drawn) == 1
    assert max(config.right_context_frames for config in drawn) >= 38
    for frames, least, most in (
        ([config.fifo_frames for config in drawn], 40, 188),
        ([config.speaker_cache.frames for config in drawn], 100, 264),
    ):
        assert least <= min(frames) < least + 5
        assert most - 5 < max(frames) <= most


@pytest.mark.parametrize("slots", [26, 80])
def test_the_cache_that_is_drawn_has_room_for_every_slot(slots):
    for seed in range(100):
        draw_stream(torch.Generator().manual_seed(seed), slots).speaker_cache.check_slots(slots)
    few, many = (draw_stream(torch.Generator().manual_seed(3), count) for count in (4, 25))
    assert few == many


def test_a_run_that_is_partly_streamed_resumes_and_learns_both_ways(run_config, tmp_path):
    stages = tuple(replace(stage, streamed_probability=0.5) for stage in run_config.stages)
    config = replace(run_config, stages=stages)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "resumed", stop=after(3))
    train(config, tmp_path / "resumed")
    assert log_of(tmp_path / "resumed") == log_of(tmp_path / "whole")
    whole, resumed = (state_of(tmp_path / run)["model"] for run in ("whole", "resumed"))
    assert all(weight.equal(resumed[name]) for name, weight in whole.items())
    train(run_config, tmp_path / "offline")
    assert log_of(tmp_path / "offline") != log_of(tmp_path / "whole")


def test_the_log_has_the_losses_of_the_frames_that_a_stream_shows_alone(run_config, tmp_path, monkeypatch):
    monkeypatch.setattr("sortformer.train.step.draw_stream", lambda *_: FEW)
    monkeypatch.setattr(
        "sortformer.losses.nn.functional.binary_cross_entropy_with_logits", lambda logits, *_, **__: logits * 0 + 1
    )
    train(replace(run_config, stages=(replace(run_config.stages[0], streamed_probability=1.0),), steps=3), tmp_path)
    assert [line["output"] for line in log_of(tmp_path)] == pytest.approx([1.0] * 3)


def test_the_gradient_is_that_of_a_mean_over_the_frames_that_a_stream_shows(run_config, sources, monkeypatch):
    """With logits for losses the bias of each of two slots moves its half of the mean, however few frames there are."""
    monkeypatch.setattr("sortformer.train.step.draw_stream", lambda *_: FEW)
    monkeypatch.setattr(
        "sortformer.losses.nn.functional.binary_cross_entropy_with_logits", lambda logits, *_, **__: logits
    )
    config = replace(
        run_config,
        # Its estimates, with neither loss nor encoding, have no gradient at all.
        model=replace(run_config.model, head=replace(run_config.model.head, permutation="none")),
        loss=LossConfig(deep_weight=0.0),
        optimizer=OptimizerConfig(clip_norm=1e9),
        stages=(replace(run_config.stages[0], streamed_probability=1.0),),
        steps=3,
    )
    state = TrainState.start(Sortformer(config.model), config.optimizer, None, torch.device("cpu"))
    take_step(state, [Batches(sources, config, config.model)[0]], config, Processes(torch.device("cpu")))
    torch.testing.assert_close(state.model.head.out.bias.grad, torch.full((2,), 0.5))


def test_a_model_that_cannot_stream_is_refused(run_config: TrainConfig):
    config = small_config()
    check_streams(config)
    for of_the_whole in ({"normalize": "per_feature"}, {"gain": "peak"}):
        with pytest.raises(ConfigError, match="streamed_probability"):
            check_streams(replace(config, features=replace(config.features, **of_the_whole)))
    with pytest.raises(ConfigError, match="streamed_probability must lie"):
        replace(run_config.stages[0], streamed_probability=1.5)

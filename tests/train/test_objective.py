"""The objective: the weighted losses of output, estimates and teacher."""

from dataclasses import fields, replace

import pytest
import torch

from sortformer.config.train import LossConfig
from sortformer.grid import FrameGrid
from sortformer.losses import hybrid_loss, permutation_loss
from sortformer.model import SortformerOutput
from sortformer.simulate import Conversations
from sortformer.train.objective import FrameCounts, frame_counts, objective
from sortformer.train.teacher import VoiceTeacher
from sortformer.train.voice_pairs import voice_pairs

GRID = FrameGrid()


def scene() -> tuple[SortformerOutput, Conversations]:
    generator = torch.Generator().manual_seed(0)
    logits, first, second = torch.randn(3, 2, 9, 3, generator=generator).unbind()
    valid = torch.arange(9) < torch.tensor([[9], [6]])
    output = SortformerOutput(logits, (first, second), torch.randn(2, 9, 8, generator=generator), valid)
    activity = (torch.rand(2, 9, 3, generator=generator) < 0.4).float() * valid[..., None]
    voice = torch.tensor([[0, 1, 2], [1, 2, -1]])
    return output, Conversations(torch.zeros(2, 9 * 1280), activity, torch.tensor([9, 6]) * 1280, voice)


def long_scene() -> tuple[SortformerOutput, Conversations]:
    """Two recordings in which voices speak alone, in turn, for half a second or more."""
    generator = torch.Generator().manual_seed(0)
    logits, first, second = torch.randn(3, 2, 80, 3, generator=generator).unbind()
    valid = torch.arange(80) < torch.tensor([[80], [50]])
    output = SortformerOutput(logits, (first, second), torch.randn(2, 80, 8, generator=generator), valid)
    speaker = torch.randint(3, (2, 8), generator=generator).repeat_interleave(10, dim=1)
    activity = torch.nn.functional.one_hot(speaker, 3).float() * valid[..., None]
    voice = torch.tensor([[0, 1, 2], [1, 2, -1]])
    return output, Conversations(torch.zeros(2, 80 * 1280), activity, torch.tensor([80, 50]) * 1280, voice)


def test_estimates_train_free_of_order_and_the_output_mostly_with_it():
    output, batch = scene()
    parts = objective(output, batch, LossConfig(sort_weight=0.7, deep_weight=0.2), None, 0.0, frame_counts(batch, GRID))
    final = hybrid_loss(output.logits, batch.activity, output.valid, 0.7)
    free = sum(permutation_loss(estimate, batch.activity, output.valid) for estimate in output.estimates)
    torch.testing.assert_close(parts["output"], final)
    torch.testing.assert_close(parts["estimates"], free)
    torch.testing.assert_close(parts["loss"], final + 0.2 * free)


def test_without_deep_supervision_estimates_cost_nothing():
    output, batch = scene()
    parts = objective(output, batch, LossConfig(deep_weight=0.0), None, 0.0, frame_counts(batch, GRID))
    assert parts["estimates"] == 0
    torch.testing.assert_close(parts["loss"], parts["output"])


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_the_teacher_counts_by_its_weight(weight):
    output, batch = scene()
    torch.manual_seed(1)
    teacher = VoiceTeacher(8, torch.randn(3, 5))
    parts = objective(output, batch, LossConfig(deep_weight=0.0), teacher, weight, frame_counts(batch, GRID))
    torch.testing.assert_close(parts["voices"], teacher(output.emb, batch.activity, batch.voice))
    torch.testing.assert_close(parts["loss"], parts["output"] + weight * parts["voices"])


def test_what_the_model_brings_along_counts_by_its_name():
    output, batch = scene()
    weights = LossConfig(ponder_weight=0.1, memory_weight=0.3, span_weight=0.7)
    plain = objective(output, batch, weights, None, 0.0, frame_counts(batch, GRID))
    brought = {"ponder": 3.0, "memory_attention": 2.0, "memory_autoencoding": 5.0, "span": 0.4}
    bringing = replace(output, losses={name: torch.tensor(loss) for name, loss in brought.items()})
    parts = objective(bringing, batch, weights, None, 0.0, frame_counts(batch, GRID))
    torch.testing.assert_close(parts["loss"], plain["loss"] + 0.1 * 3.0 + 0.3 * 7.0 + 0.7 * 0.4)
    assert {name: parts[name] for name in bringing.losses} == bringing.losses


def test_pairs_of_voices_count_by_their_weight():
    output, batch = long_scene()
    plain = objective(output, batch, LossConfig(), None, 0.0, frame_counts(batch, GRID))
    weights = LossConfig(voice_pairs_weight=0.5, voice_pairs_threshold=0.3)
    parts = objective(output, batch, weights, None, 0.0, frame_counts(batch, GRID))
    assert "voice_pairs" not in plain
    expected = voice_pairs(output.emb, batch.activity, output.valid, threshold=0.3)
    assert expected > 0
    torch.testing.assert_close(parts["voice_pairs"], expected)
    torch.testing.assert_close(parts["loss"], plain["loss"] + 0.5 * expected)


def test_frames_are_those_that_count():
    _, batch = scene()
    known = batch.activity.any(dim=2) & (batch.voice >= 0).any(dim=1)[:, None]
    named = replace(batch, voice=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    assert frame_counts(named, GRID) == FrameCounts(15, int(known.sum()))
    real = replace(batch, voice=torch.stack([batch.voice[0], torch.full((3,), -1)]))
    assert frame_counts(real, GRID) == FrameCounts(15, int(batch.activity[0].any(dim=1).sum()))


def test_the_losses_of_parts_add_up_to_that_of_the_whole():
    output, batch = long_scene()
    torch.manual_seed(1)
    teacher, frames, config = (
        VoiceTeacher(8, torch.randn(3, 5)),
        frame_counts(batch, GRID),
        LossConfig(voice_pairs_weight=0.5),
    )
    whole = objective(output, batch, config, teacher, 0.5, frames)
    parts = []
    for row in ([0], [1]):
        estimates = tuple(estimate[row] for estimate in output.estimates)
        part = SortformerOutput(output.logits[row], estimates, output.emb[row], output.valid[row])
        own = Conversations(*(getattr(batch, field.name)[row] for field in fields(batch)))
        parts.append(objective(part, own, config, teacher, 0.5, frames))
    assert set(whole) == {"loss", "output", "estimates", "voices", "voice_pairs"}
    for name, loss in whole.items():
        torch.testing.assert_close(sum(part[name] for part in parts), loss)

"""Pairs of stretches: the definition by hand, exclusions from the loss, and that descent separates voices."""

import math

import pytest
import torch

from sortformer.train.voice_pairs import voice_pairs


def scene(frames: int = 61, slots: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two conversations with turns of a few frames, overlap, silence and padding."""
    generator = torch.Generator().manual_seed(seed)
    emb = torch.randn(2, frames, 6, generator=generator)
    speaker = torch.randint(slots, (2, frames // 5 + 1), generator=generator).repeat_interleave(5, dim=1)[:, :frames]
    activity = torch.nn.functional.one_hot(speaker, slots).float()
    activity[:, 12:15, 0] = activity[:, 12:15, 1] = 1
    activity[:, 30:33] = 0
    valid = torch.arange(frames) < torch.tensor([[frames], [frames - 20]])
    return emb, activity * valid[..., None], valid


def by_hand(emb: torch.Tensor, activity: torch.Tensor, valid: torch.Tensor, threshold: float) -> float:
    total = 0.0
    for row in range(len(emb)):
        stretches = []
        for start in range(0, emb.shape[1], 8):
            for slot in range(activity.shape[2]):
                alone = [
                    emb[row, t] / emb[row, t].norm()
                    for t in range(start, min(start + 8, emb.shape[1]))
                    if valid[row, t] and activity[row, t].sum() == 1 and activity[row, t, slot]
                ]
                if len(alone) >= 3:
                    stretches.append((slot, sum(alone) / torch.stack(alone).sum(0).norm()))
        equal, unequal = [], []
        for i, (one, x) in enumerate(stretches):
            for j, (other, y) in enumerate(stretches):
                odds = 16 * (threshold - (1 - float(x @ y)))
                if i != j:
                    (equal if one == other else unequal).append(math.log1p(math.exp(-odds if one == other else odds)))
        means = [sum(pairs) / len(pairs) for pairs in (equal, unequal) if pairs]
        total += sum(means) * int(valid[row].sum())
    return total / int(valid.sum())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threshold", [0.25, 0.4])
def test_it_is_logistic_regression_on_pairs_of_stretches(seed, threshold):
    problem = scene(seed=seed)
    found = voice_pairs(*problem, threshold=threshold)
    assert found > 0
    assert float(found) == pytest.approx(by_hand(*problem, threshold), rel=1e-4)


def test_the_order_of_slots_does_not_matter():
    emb, activity, valid = scene()
    torch.testing.assert_close(voice_pairs(emb, activity[..., [2, 0, 1]], valid), voice_pairs(emb, activity, valid))


def test_padding_overlap_and_silence_leave_loss_and_gradient_alone():
    emb, activity, valid = scene()
    plain = emb.clone().requires_grad_()
    expected = voice_pairs(plain, activity, valid)
    expected.backward()
    ignored = ~valid | (activity.sum(2) != 1)
    other = emb.masked_fill(ignored[..., None], torch.nan).requires_grad_()
    found = voice_pairs(other, activity.masked_fill(~valid[..., None], torch.nan), valid)
    found.backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(other.grad, plain.grad)


@pytest.mark.parametrize("speaking", [[], [1]])
def test_without_a_second_voice_nothing_is_told_apart(speaking):
    emb, activity, valid = scene()
    activity = torch.zeros_like(activity)
    activity[..., speaking] = 1
    found = voice_pairs(torch.ones_like(emb), activity, valid)
    # Equal embeddings: each pair of the same voice has the loss of distance 0.
    assert float(found) == pytest.approx(math.log1p(math.exp(-16 * 0.4)) if speaking else 0.0, abs=1e-6)


def test_descending_it_parts_voices_by_the_threshold():
    _, activity, valid = scene()
    generator = torch.Generator().manual_seed(3)
    # All voices start with the same embedding, so that distances are uninformative.
    emb = (torch.ones(6) + 0.1 * torch.randn(2, 61, 6, generator=generator)).requires_grad_()
    optimizer = torch.optim.Adam([emb], 0.05)
    for _ in range(200):
        optimizer.zero_grad()
        voice_pairs(emb, activity, valid, threshold=0.4).backward()
        optimizer.step()
    unit = torch.nn.functional.normalize(emb.detach(), dim=2)
    for row in range(2):
        alone = valid[row] & (activity[row].sum(1) == 1)
        means = [unit[row][alone & (activity[row, :, slot] > 0)] for slot in range(3)]
        for slot, frames in enumerate(means):
            for other, others in enumerate(means):
                distance = 1 - float((frames @ others.T).mean())
                assert distance < 0.4 if slot == other else distance > 0.4


def test_half_precision_is_scored_in_float32():
    emb, activity, valid = scene()
    found = voice_pairs(emb.bfloat16(), activity, valid)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, voice_pairs(emb.bfloat16().float(), activity, valid))

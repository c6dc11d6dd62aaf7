"""ALiBi and DA-Transformer: equal to their formulas pair by pair, and without effect in their limits."""

import math

import numpy as np
import pytest
import torch

from sortformer.attention.softmax import attend
from sortformer.position import AlibiPosition, DistanceAwarePosition, Places
from tests.draws import draw

HEADS, DIM, FRAMES = 4, 4, 6


def test_eight_heads_have_the_slopes_of_the_paper_but_for_the_last_which_has_none():
    slopes = AlibiPosition(8, 1).slopes
    np.testing.assert_allclose(slopes.numpy(), [*(2.0**-h for h in range(1, 8)), 0.0], rtol=1e-6)
    assert AlibiPosition(1, 1).slopes.item() == 2.0**-8


def test_alibi_subtracts_a_slope_times_the_distance_from_what_the_softmax_sees():
    bias = AlibiPosition(HEADS, DIM).bias(draw(0, 1, HEADS, FRAMES, DIM), Places.whole(FRAMES))
    for h, i, j in np.ndindex(HEADS, FRAMES, FRAMES):
        expected = -(2 ** (-8 * (h + 1) / HEADS)) * abs(i - j) if h + 1 < HEADS else 0.0
        assert bias[0, h, i, j].item() / math.sqrt(DIM) == pytest.approx(expected, rel=1e-6)


def test_distance_aware_attention_equals_its_formula():
    position = DistanceAwarePosition(HEADS).double()
    with torch.no_grad():
        position.slope.copy_(torch.tensor([-1.0, -0.1, 0.3, 2.0]))
        position.saturation.copy_(torch.tensor([0.5, -1.0, 2.0, 0.0]))
        factor = position.factor(Places.whole(FRAMES))
        query, key, value = draw(1, 3, 1, HEADS, FRAMES, DIM).unbind()
        out = attend(query, key, value, torch.ones(1, 1, 1, 1, dtype=torch.bool), None, factor)
    for h, i in np.ndindex(HEADS, FRAMES):
        a, b = position.slope[h].item(), position.saturation[h].item()
        weights = []
        for j in range(FRAMES):
            learned = (1 + math.exp(b)) / (1 + math.exp(b - a * abs(i - j)))
            weights.append(math.exp(max(0.0, float(query[0, h, i] @ key[0, h, j])) * learned / math.sqrt(DIM)))
        expected = sum(w * value[0, h, j].numpy() for j, w in enumerate(weights)) / sum(weights)
        np.testing.assert_allclose(out[0, h, i].numpy(), expected, atol=1e-9)


def test_the_distance_counts_for_nothing_at_first():
    factor = DistanceAwarePosition(HEADS).factor(Places.whole(FRAMES))
    torch.testing.assert_close(factor, torch.ones_like(factor))
    factor.sum().backward()


def test_both_learn_from_the_distance():
    position = DistanceAwarePosition(2)
    position.factor(Places.whole(4)).square().sum().backward()
    assert position.slope.grad is not None
    assert position.slope.grad.abs().min() > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_a_compressed_frame_stands_decides_no_type(dtype):
    places = Places(torch.arange(3)[None], torch.tensor([[0.5, 2.0]], dtype=torch.float64))
    assert AlibiPosition(HEADS, 4).to(dtype).bias(torch.zeros(1, HEADS, 3, 4, dtype=dtype), places).dtype is dtype
    assert DistanceAwarePosition(HEADS).to(dtype).factor(places).dtype is dtype

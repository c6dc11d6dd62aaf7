"""Arrival times and order, hard and soft: equal to loops, with ties and absent classes, and useful gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sortformer.model.arrival import (
    Arrivals,
    arrival_frames,
    arrival_order,
    expected_arrival,
    sinkhorn_slots,
    soft_ranks,
    soft_slots,
)
from tests.model.activities import ARRIVALS, logits_of_turns, speaking_from
from tests.oracles import arrival_loops as oracle

estimates = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 12), st.integers(1, 5)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
)
arrival_times = st.lists(st.floats(0, 300, width=32), min_size=1, max_size=6)


@given(probs=estimates)
def test_arrival_is_the_first_frame_above_the_threshold(probs):
    assert arrival_frames(torch.from_numpy(probs)[None])[0].tolist() == oracle.arrivals(probs)


@given(probs=estimates)
def test_the_order_is_that_of_arrival_and_of_a_tie_who_speaks_more_is_first(probs):
    assert arrival_order(torch.from_numpy(probs)[None])[0].tolist() == oracle.order(probs)


def test_sorted_order_of_constructed_activity():
    probs = torch.sigmoid(speaking_from(ARRIVALS))
    assert arrival_frames(probs).tolist() == [list(ARRIVALS)]
    assert arrival_order(probs).tolist() == [[1, 3, 0, 2]]


def test_without_the_first_speaker_all_others_move_up_by_one():
    times = torch.tensor([ARRIVALS], dtype=torch.float32)
    torch.testing.assert_close(
        soft_ranks(times[:, [0, 2, 3]], 1.0), soft_ranks(times, 1.0)[:, [0, 2, 3]] - 1, atol=1e-4, rtol=0
    )


def test_time_reversal_reverses_the_order_of_turns_one_after_another_only():
    in_turn = logits_of_turns([(10, 20), (30, 40), (50, 60)], 70)
    assert arrival_order(in_turn.sigmoid()).tolist() == [[0, 1, 2]]
    assert arrival_order(in_turn.flip(1).sigmoid()).tolist() == [[2, 1, 0]]
    # A class that speaks throughout is first in both directions.
    nested = logits_of_turns([(0, 70), (30, 40), (50, 60)], 70)
    assert arrival_order(nested.sigmoid()).tolist() == [[0, 1, 2]]
    assert arrival_order(nested.flip(1).sigmoid()).tolist() == [[0, 2, 1]]


@given(
    logits=arrays.arrays(np.float64, st.tuples(st.integers(1, 10), st.integers(1, 3)), elements=st.floats(-8, 8)),
    sharpness=st.sampled_from([0.5, 1.0, 8.0]),
)
def test_expected_arrival_is_the_expectation(logits, sharpness):
    valid = torch.ones(1, len(logits), dtype=torch.bool)
    arrivals, presence = expected_arrival(torch.from_numpy(logits)[None], valid, sharpness)
    times, chances = oracle.expected_arrivals(logits, sharpness)
    np.testing.assert_allclose(arrivals[0].numpy(), times, atol=1e-3)
    np.testing.assert_allclose(presence[0].numpy(), chances, atol=1e-5)


@pytest.mark.parametrize(("sharpness", "expected"), [(1.0, [19.0, 4.4, 20.0, 15.4]), (8.0, list(ARRIVALS))])
def test_sharpness_brings_expected_arrivals_to_the_true_ones(sharpness, expected):
    valid = torch.ones(1, 200, dtype=torch.bool)
    arrivals, presence = expected_arrival(speaking_from(ARRIVALS, level=3.0), valid, sharpness)
    torch.testing.assert_close(arrivals, torch.tensor([expected], dtype=torch.float32), atol=0.1, rtol=0)
    assert presence.min() > 0.99


def test_an_hour_of_half_precision_still_tells_arrivals_that_are_seconds_apart():
    logits = torch.full((1, 45_000, 2), -40.0)
    logits[:, 20_010:, 0] = logits[:, 20_050:, 1] = 40.0
    arrivals, _ = expected_arrival(logits.bfloat16(), torch.ones(1, 45_000, dtype=torch.bool), 1.0)
    assert arrivals.tolist() == [[20_010.0, 20_050.0]]


def test_expected_arrival_is_blind_to_the_padding():
    logits = speaking_from((3, 7, 99), frames=10)
    alone = expected_arrival(logits, torch.ones(1, 10, dtype=torch.bool), 8.0)
    padded = torch.cat([logits, torch.full((1, 5, 3), torch.nan)], dim=1)
    together = expected_arrival(padded, torch.arange(15)[None] < 10, 8.0)
    torch.testing.assert_close(together, alone)


def test_speaking_earlier_brings_arrival_forward_and_speaking_later_changes_nothing():
    logits = speaking_from((30,), frames=100, level=3.0).requires_grad_()
    arrivals, _ = expected_arrival(logits, torch.ones(1, 100, dtype=torch.bool), 1.0)
    arrivals.sum().backward()
    gradient = logits.grad
    assert gradient is not None
    assert (gradient <= 0).all()
    assert (gradient[0, :30] < -0.01).all()
    assert gradient[0, 33:].abs().max() < 1e-4


@given(times=arrival_times, temperature=st.sampled_from([1.0, 3.0, 10.0]))
def test_soft_ranks_count_who_came_before_each_by_a_sigmoid(times, temperature):
    found = soft_ranks(torch.tensor([times], dtype=torch.float64), temperature)
    np.testing.assert_allclose(found[0].numpy(), oracle.soft_ranks(times, temperature), atol=1e-9)
    assert found.sum().item() == pytest.approx(len(times) * (len(times) - 1) / 2)


@pytest.mark.parametrize("classes", [1, 2, 4, 8])
def test_equal_arrivals_share_the_middle_rank(classes):
    ranks = soft_ranks(torch.full((1, classes), 17.0), 3.0)
    torch.testing.assert_close(ranks, torch.full((1, classes), (classes - 1) / 2))


def test_classes_that_arrive_at_once_and_as_surely_share_the_middle_rank_of_design_a():
    known = Arrivals.none(1, 5).after(torch.tensor([[[0.9, 0.7, 0.9, 0.1, 0.2]]]))
    assert known.ranks().tolist() == [[0.5, 2.0, 0.5, 3.5, 3.5]]


def test_gradients_at_a_near_tie_are_equal_and_opposite():
    times = torch.tensor([[20.0, 20.5]], dtype=torch.float64, requires_grad=True)
    ranks = soft_ranks(times, 3.0)
    (ahead,) = torch.autograd.grad(ranks[0, 0], times, retain_graph=True)
    (behind,) = torch.autograd.grad(ranks[0, 1], times)
    assert ahead[0, 0] > 0.05
    torch.testing.assert_close(ahead, -behind)
    torch.testing.assert_close(ahead[0, 0], -ahead[0, 1])


@given(
    order=st.permutations(range(4)),
    gaps=st.lists(st.floats(3, 50), min_size=4, max_size=4),
    temperature=st.sampled_from([1.0, 3.0]),
)
def test_soft_order_is_the_hard_order_where_gaps_are_three_temperatures(order, gaps, temperature):
    by_rank = torch.tensor(gaps).cumsum(0) * temperature
    times = by_rank[list(order)][None]
    hard = torch.tensor([order])
    assert soft_ranks(times, temperature).round().long().equal(hard)
    for slots in (soft_slots(times, temperature), sinkhorn_slots(times, temperature)):
        assert slots.argmax(dim=1).equal(hard)  # for each class its slot
        assert slots.argmax(dim=2).equal(hard.argsort(dim=1))  # for each slot its class


@given(times=arrival_times, temperature=st.sampled_from([0.1, 3.0]))
def test_every_soft_slot_shares_out_one_class(times, temperature):
    slots = soft_slots(torch.tensor([times]), temperature)
    torch.testing.assert_close(slots.sum(dim=2), torch.ones(1, len(times)))
    assert (slots >= 0).all()


@given(
    times=st.lists(st.one_of(st.floats(0, 300), st.just(300.0)), min_size=1, max_size=8),
    temperature=st.sampled_from([0.1, 3.0, 10.0]),
)
def test_no_class_goes_to_two_slots_of_sinkhorn_nor_slot_to_two_classes(times, temperature):
    slots = sinkhorn_slots(torch.tensor([times], dtype=torch.float64), temperature)
    one = torch.ones(1, len(times), dtype=torch.float64)
    torch.testing.assert_close(slots.sum(dim=1), one)
    torch.testing.assert_close(slots.sum(dim=2), one, atol=0.03, rtol=0)
    assert (slots >= 0).all()


def test_slots_of_softsort_may_have_more_than_one_class():
    """The control of the test above."""
    times = torch.tensor([[0.0, 4.0, 4.0, 4.0, 8.0]], dtype=torch.float64)
    assert (soft_slots(times, 3.0).sum(dim=1) - 1).abs().max() > 0.1

"""The losses equal brute force over all orders, and do not depend on reference order, padding or batch."""

from functools import partial

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from sortformer.losses import align, binary_cross_entropy, hybrid_loss, permutation_loss, sort_loss
from tests.oracles import permutation_losses as oracle

LOSSES = {
    "sort": sort_loss,
    "permutation": permutation_loss,
    "hybrid": partial(hybrid_loss, sort_weight=0.3),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@every_loss
def test_what_is_given_in_float64_is_scored_in_float64(loss):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(1, 5, 3, dtype=torch.float64, generator=generator).requires_grad_()
    activity = torch.rand(1, 5, 3, generator=generator) < 0.5
    assert loss(logits, activity, torch.ones(1, 5, dtype=torch.bool)).dtype == torch.float64
    assert torch.autograd.gradcheck(lambda x: loss(x, activity, torch.ones(1, 5, dtype=torch.bool)), logits)


@st.composite
def problems(draw, max_slots: int = 4, max_frames: int = 6, ties: bool = True) -> tuple[Tensor, Tensor, list[int]]:
    """Logits (B, T, S), activity (B, T, S) and the valid frames of each row."""
    rows, frames, slots = draw(st.integers(1, 3)), draw(st.integers(1, max_frames)), draw(st.integers(1, max_slots))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    logits = 3 * torch.randn(rows, frames, slots, generator=generator)
    activity = (torch.rand(rows, frames, slots, generator=generator) < draw(st.sampled_from([0.2, 0.6]))).float()
    lengths = draw(st.lists(st.integers(1, frames), min_size=rows, max_size=rows))
    if not ties:
        arrivals = [
            [oracle.arrival(row[:length].numpy(), speaker) for speaker in range(slots)]
            for row, length in zip(activity, lengths, strict=True)
        ]
        assume(all(len({t for t in row if t < n}) == sum(t < n for t in row)
                   for row, n in zip(arrivals, lengths, strict=True)))  # fmt: skip
    return logits, activity, lengths


def mask(lengths: list[int], frames: int) -> Tensor:
    return torch.arange(frames) < torch.tensor(lengths)[:, None]


@given(problem=problems())
def test_sort_loss_is_the_best_of_the_orders_that_respect_arrival(problem):
    logits, activity, lengths = problem
    found = sort_loss(logits, activity, mask(lengths, logits.shape[1]))
    assert found.item() == pytest.approx(oracle.sort_loss(logits.numpy(), activity.numpy(), lengths), abs=1e-5)


@given(problem=problems())
def test_permutation_loss_is_the_best_of_all_orders(problem):
    logits, activity, lengths = problem
    found = permutation_loss(logits, activity, mask(lengths, logits.shape[1]))
    assert found.item() == pytest.approx(oracle.permutation_loss(logits.numpy(), activity.numpy(), lengths), abs=1e-5)


@given(problem=problems())
def test_no_order_is_better_than_the_free_one(problem):
    logits, activity, lengths = problem
    valid = mask(lengths, logits.shape[1])
    assert permutation_loss(logits, activity, valid) <= sort_loss(logits, activity, valid) + 1e-6


@given(problem=problems(ties=False))
def test_both_are_equal_where_the_logits_are_in_order_of_arrival(problem):
    _, activity, lengths = problem
    valid = mask(lengths, activity.shape[1])
    in_order = align(torch.zeros_like(activity), activity, valid, by_arrival=True)
    logits = 8 * in_order - 4
    torch.testing.assert_close(sort_loss(logits, activity, valid), permutation_loss(logits, activity, valid))
    assert sort_loss(logits, activity, valid) < 0.02


@every_loss
@given(problem=problems(), data=st.data())
@settings(max_examples=50)
def test_the_order_of_the_reference_speakers_does_not_matter(loss, problem, data):
    logits, activity, lengths = problem
    order = data.draw(st.permutations(range(activity.shape[2])))
    valid = mask(lengths, logits.shape[1])
    torch.testing.assert_close(loss(logits, activity[..., order], valid), loss(logits, activity, valid))


@every_loss
@given(problem=problems(), extra=st.integers(0, 3))
@settings(max_examples=50)
def test_nan_in_the_padding_changes_neither_loss_nor_gradient(loss, problem, extra):
    logits, activity, lengths = problem
    valid = mask(lengths, logits.shape[1])
    plain = logits.clone().requires_grad_()
    expected = loss(plain, activity, valid)
    expected.backward()

    padding = (0, 0, 0, extra)
    valid = torch.nn.functional.pad(valid, padding[2:])
    outside = ~valid[..., None]
    padded = torch.nn.functional.pad(logits, padding).masked_fill(outside, torch.nan).requires_grad_()
    found = loss(padded, torch.nn.functional.pad(activity, padding).masked_fill(outside, torch.nan), valid)
    found.backward()
    torch.testing.assert_close(found, expected)
    assert plain.grad is not None
    assert padded.grad is not None
    torch.testing.assert_close(padded.grad[:, : logits.shape[1]], plain.grad)
    assert not padded.grad[:, logits.shape[1] :].any()


@every_loss
@given(problem=problems())
@settings(max_examples=50)
def test_a_batch_is_the_mean_of_its_rows_by_their_frames(loss, problem):
    logits, activity, lengths = problem
    valid = mask(lengths, logits.shape[1])
    alone = [
        loss(logits[row : row + 1, :length], activity[row : row + 1, :length], valid[row : row + 1, :length]) * length
        for row, length in enumerate(lengths)
    ]
    torch.testing.assert_close(loss(logits, activity, valid), torch.stack(alone).sum() / sum(lengths))


@every_loss
@given(problem=problems())
@settings(max_examples=15)
def test_the_losses_of_the_parts_of_a_batch_sum_to_its_loss(loss, problem):
    logits, activity, lengths = problem
    batch = logits, activity, mask(lengths, logits.shape[1])
    parts = [loss(*(of_all[row : row + 1] for of_all in batch), frames=sum(lengths)) for row in range(len(lengths))]
    torch.testing.assert_close(torch.stack(parts).sum(), loss(*batch))


@given(problem=problems(ties=False))
def test_the_sorted_target_is_nemos_where_nobody_ties(problem):
    logits, activity, lengths = problem
    ours = align(logits, activity, mask(lengths, logits.shape[1]), by_arrival=True)
    for row, length in enumerate(lengths):
        order = oracle.nemo_order(logits[row, :length].numpy(), activity[row, :length].numpy(), by_arrival=True)
        assert ours[row, :length].equal(activity[row, :length][:, list(order)])


@given(problem=problems(), by_arrival=st.booleans(), data=st.data())
def test_with_ties_the_target_is_nemos_where_the_best_order_is_plain(problem, by_arrival, data):
    """The logits show the speakers clearly, in an order that both rules must find."""
    noise, activity, lengths = problem
    valid = mask(lengths, activity.shape[1])
    logits = torch.empty_like(activity)
    for row, length in enumerate(lengths):
        legal = list(oracle.orders(activity[row, :length].numpy(), by_arrival))
        logits[row] = 12 * activity[row][:, list(data.draw(st.sampled_from(legal)))] - 6 + 0.1 * noise[row]
    ours = align(logits, activity, valid, by_arrival=by_arrival)
    for row, length in enumerate(lengths):
        order = oracle.nemo_order(logits[row, :length].numpy(), activity[row, :length].numpy(), by_arrival)
        assert ours[row, :length].equal(activity[row, :length][:, list(order)])


@given(problem=problems(), by_arrival=st.booleans())
def test_our_order_never_costs_more_than_nemos(problem, by_arrival):
    logits, activity, lengths = problem
    valid = mask(lengths, logits.shape[1])
    ours = align(logits, activity, valid, by_arrival=by_arrival)
    theirs = torch.zeros_like(activity)
    for row, length in enumerate(lengths):
        order = oracle.nemo_order(logits[row, :length].numpy(), activity[row, :length].numpy(), by_arrival)
        theirs[row, :length] = activity[row, :length][:, list(order)]
    assert binary_cross_entropy(logits, ours, valid) <= binary_cross_entropy(logits, theirs, valid) + 1e-6


@pytest.mark.timeout(60)
def test_eight_slots_are_as_easy_as_four():
    """Long rows with a planted order: trying all 40,320 orders of each would take minutes."""
    generator = torch.Generator().manual_seed(0)
    activity = (torch.rand(16, 750, 8, generator=generator) < 0.3).float()
    valid = torch.ones(16, 750, dtype=torch.bool)
    planted = torch.stack([activity[row][:, torch.randperm(8, generator=generator)] for row in range(16)])
    logits = 4 * planted - 2
    assert align(logits, activity, valid, by_arrival=False).equal(planted)
    torch.testing.assert_close(permutation_loss(logits, activity, valid), binary_cross_entropy(logits, planted, valid))


@pytest.mark.parametrize("slots", [4, 8])
@pytest.mark.parametrize("level", [1e30, 1e37, 1e38])
def test_logits_of_any_size_keep_to_the_order_of_arrival(slots, level):
    activity = torch.stack([(torch.arange(20) >= slot).float() for slot in range(slots)], dim=1)[None]
    logits = level * torch.randn(1, 20, slots, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    valid = torch.ones(1, 20, dtype=torch.bool)
    assert align(logits, activity, valid, by_arrival=True).equal(activity)
    assert align(logits, activity.flip(2), valid, by_arrival=True).equal(activity)


def test_tied_speakers_may_take_either_slot():
    activity = torch.tensor([[[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]]])
    valid = torch.ones(1, 3, dtype=torch.bool)
    for logits in (8 * activity - 4, 8 * activity.flip(2) - 4):
        assert sort_loss(logits, activity, valid) < 0.02


def test_speakers_who_do_not_tie_may_not():
    activity = torch.tensor([[[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]])
    valid = torch.ones(1, 3, dtype=torch.bool)
    assert sort_loss(8 * activity - 4, activity, valid) < 0.02
    assert sort_loss(8 * activity.flip(2) - 4, activity, valid) > 2.0
    assert permutation_loss(8 * activity.flip(2) - 4, activity, valid) < 0.02


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_the_hybrid_is_the_mix_of_both(weight):
    generator = torch.Generator().manual_seed(1)
    logits, valid = torch.randn(2, 9, 3, generator=generator), mask([9, 5], 9)
    activity = (torch.rand(2, 9, 3, generator=generator) < 0.5).float()
    expected = weight * sort_loss(logits, activity, valid) + (1 - weight) * permutation_loss(logits, activity, valid)
    torch.testing.assert_close(hybrid_loss(logits, activity, valid, weight), expected)


@every_loss
@pytest.mark.parametrize("level", [50.0, 500.0])
def test_certain_and_wrong_logits_give_finite_losses_and_gradients(loss, level):
    activity = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    logits = (level * (1 - 2 * activity)).requires_grad_()
    value = loss(logits, activity, torch.ones(1, 3, dtype=torch.bool))
    value.backward()
    assert torch.isfinite(value)
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


@every_loss
@pytest.mark.parametrize("fault", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("slots", [3, 6])
def test_a_model_gone_wrong_shows_in_the_loss_and_raises_nothing(loss, fault, slots):
    logits = torch.zeros(2, 4, slots)
    logits[0, 1, 2] = fault
    activity = torch.ones(2, 4, slots)
    activity[0, 1, 2] = 0.0 if fault == torch.inf else 1.0
    value = loss(logits, activity, torch.ones(2, 4, dtype=torch.bool))
    assert not torch.isfinite(value)


@every_loss
def test_nothing_valid_costs_nothing(loss):
    logits = torch.zeros(2, 4, 3, requires_grad=True)
    value = loss(logits, torch.ones(2, 4, 3), torch.zeros(2, 4, dtype=torch.bool))
    value.backward()
    assert value == 0
    assert logits.grad is not None
    assert not logits.grad.any()


@every_loss
def test_half_precision_logits_are_scored_in_float32(loss):
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(2, 9, 3, generator=generator).bfloat16()
    activity = (torch.rand(2, 9, 3, generator=generator) < 0.5).float()
    value = loss(logits, activity, mask([9, 5], 9))
    assert value.dtype is torch.float32
    torch.testing.assert_close(value, loss(logits.float(), activity, mask([9, 5], 9)))


@every_loss
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.bfloat16, torch.float64])
def test_activity_may_be_of_any_type(loss, dtype):
    generator = torch.Generator().manual_seed(4)
    logits, activity = torch.randn(2, 9, 3, generator=generator), torch.rand(2, 9, 3, generator=generator) < 0.5
    found = loss(logits, activity.to(dtype), mask([9, 5], 9))
    torch.testing.assert_close(found, loss(logits, activity.float(), mask([9, 5], 9)), atol=0, rtol=0)


def test_aligning_only_reorders_speakers():
    generator = torch.Generator().manual_seed(3)
    activity = (torch.rand(2, 9, 4, generator=generator) < 0.5).float()
    aligned = align(torch.randn(2, 9, 4, generator=generator), activity, mask([9, 9], 9), by_arrival=False)
    for row in range(2):
        assert sorted(aligned[row].T.tolist()) == sorted(activity[row].T.tolist())

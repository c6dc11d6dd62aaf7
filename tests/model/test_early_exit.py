"""Early exit: recordings exit independently, with the agreed estimate, and later blocks are not run."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from sortformer.errors import ConfigError
from sortformer.model.early_exit import agreement, in_order_of_arrival, leave_early
from tests.oracles.exit_loops import exit_of, jaccard, sorted_by_arrival
from tests.small_models import SHAPES, small_config, small_model

DEEP = small_config(head={"layers": 5, "estimate_layers": (0, 1, 3)})
MODELS = {
    "deep": small_model(DEEP),
    "shaw-soft": small_model(SHAPES["shaw-soft"]),
    "label": small_model(SHAPES["label"]),
}
seeds = st.integers(0, 1000)


def recordings(seed: int, lengths: list[int], extra: int = 0) -> tuple[Tensor, Tensor]:
    feats = torch.randn(len(lengths), max(lengths) + extra, 16, generator=torch.Generator().manual_seed(seed))
    inside = torch.arange(feats.shape[1]) < torch.tensor(lengths)[:, None]
    return feats.masked_fill(~inside[..., None], torch.nan), torch.tensor(lengths)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", MODELS)
@given(seed=seeds, lengths=st.lists(st.integers(16, 200), min_size=1, max_size=4), share=st.floats(0.0, 1.0))
@settings(max_examples=15)
def test_it_is_the_loop_over_recordings(name: str, seed: int, lengths: list[int], share: float):
    model = MODELS[name]
    feats, counts = recordings(seed, lengths, extra=9)
    with torch.no_grad():
        whole = model.forward_features(feats, counts)
    rows = [
        [estimate[row][whole.valid[row]].sigmoid().numpy() for estimate in whole.estimates]
        for row in range(len(lengths))
    ]
    seen = [jaccard(*map(sorted_by_arrival, pair)) for row in rows for pair in pairwise(row)]
    # Between two confidences that occur, so that rounding does not matter.
    steps = sorted({0.0, 1.0, *seen})
    index = min(int(share * (len(steps) - 1)), len(steps) - 2)
    confidence = (steps[index] + steps[index + 1]) / 2
    found = leave_early(model, feats, counts, confidence)
    for row, estimates in enumerate(rows):
        exit, expected = exit_of(estimates, confidence)
        inside = whole.valid[row]
        assert found.layers[row] == (
            model.config.head.layers if exit is None else model.config.head.estimate_layers[exit]
        )
        expected = whole.probs[row][inside].numpy() if expected is None else expected
        np.testing.assert_allclose(found.probs[row][inside].numpy(), expected, atol=1e-5)
        assert not found.probs[row][~inside].any()


@pytest.mark.parametrize("name", MODELS)
def test_whoever_is_never_sure_gets_the_whole_model(name: str):
    model = MODELS[name]
    feats, lengths = recordings(0, [160, 90])
    found = leave_early(model, feats, lengths, 1.0)
    with torch.no_grad():
        torch.testing.assert_close(found.probs, model.forward_features(feats, lengths).probs, atol=0, rtol=0)
    assert found.layers.tolist() == [model.config.head.layers] * 2


def test_who_is_sure_that_nothing_changes_leaves_at_any_confidence():
    model = small_model(DEEP)
    for parameter in model.head.estimates.parameters():
        torch.nn.init.zeros_(parameter)
    assert leave_early(model, *recordings(0, [160, 90]), 1.0).layers.tolist() == [1, 1]


def test_blocks_that_nobody_needs_do_not_run():
    model = MODELS["deep"]
    ran: list[int] = []
    hooks = [block.register_forward_hook(lambda *_, n=n: ran.append(n)) for n, block in enumerate(model.head.blocks)]
    found = leave_early(model, *recordings(0, [160, 90]), 1e-9)
    for hook in hooks:
        hook.remove()
    assert ran == [0]  # up to the second estimate
    assert found.layers.tolist() == [1, 1]


@given(seed=seeds, order=st.permutations(range(3)))
def test_the_order_of_the_classes_changes_nothing(seed: int, order: list[int]):
    probs, valid = draw(seed, 2, 7, 3), torch.arange(7) < torch.tensor([[7], [4]])
    expected = in_order_of_arrival(probs, valid)
    assert in_order_of_arrival(probs[..., order], valid).equal(expected)
    for row, length in enumerate((7, 4)):
        np.testing.assert_array_equal(expected[row, :length], sorted_by_arrival(probs[row, :length].numpy()))


@pytest.mark.parametrize("confidence", [0.01, 1.0])
def test_it_leaves_under_autocast_where_norms_stay_in_float32(monkeypatch: pytest.MonkeyPatch, confidence: float):
    norm = nn.functional.layer_norm
    monkeypatch.setattr(nn.functional, "layer_norm", lambda x, *given: norm(x.float(), *given))  # as CUDA's autocast
    feats, lengths = recordings(0, [50, 70])
    expected = leave_early(MODELS["deep"], feats, lengths, confidence)
    with torch.autocast("cpu", torch.bfloat16):
        found = leave_early(MODELS["deep"], feats, lengths, confidence)
    assert found.layers.equal(expected.layers)
    torch.testing.assert_close(found.probs, expected.probs, atol=0.05, rtol=0)


@given(seed=seeds)
def test_agreement_is_a_jaccard_index(seed: int):
    valid = torch.arange(6) < torch.tensor([[6], [3]])
    one, other = draw(seed, 2, 6, 3), draw(seed + 1, 2, 6, 3)
    found = agreement(one.masked_fill(~valid[..., None], torch.nan), other, valid)
    torch.testing.assert_close(found, agreement(other, one, valid))
    assert found.tolist() == pytest.approx(
        [jaccard(one[r, :n].numpy(), other[r, :n].numpy()) for r, n in ((0, 6), (1, 3))]
    )
    torch.testing.assert_close(agreement(one / 100, other / 100, valid), agreement(one, other, valid))
    assert agreement(one, one, valid).tolist() == [1, 1]
    active, others = one > 0.5, other > 0.5
    same, any_ = (active & others)[0].sum(), (active | others)[0].sum()
    assert agreement(active.float(), others.float(), valid)[0] == pytest.approx(float(same / any_))


def test_two_silences_agree_and_silence_with_speech_does_not():
    silence, valid = torch.zeros(1, 4, 2), torch.ones(1, 4, dtype=torch.bool)
    assert agreement(silence, silence, valid) == 1
    assert agreement(silence, torch.ones(1, 4, 2), valid) == 0


@pytest.mark.parametrize("confidence", [0.0, -0.5, 1.01, float("nan"), "0.9", None])
def test_a_confidence_that_is_none_is_refused(confidence: Any):
    with pytest.raises(ConfigError, match="confidence of an early exit must be above 0 and at most 1"):
        leave_early(MODELS["deep"], *recordings(0, [50]), confidence)


@pytest.mark.parametrize("layers", [(), (1,)])
def test_a_model_with_fewer_than_two_estimates_is_refused(layers: tuple[int, ...]):
    model = small_model(small_config(head={"permutation": "none", "estimate_layers": layers}))
    with pytest.raises(ConfigError, match="fewer than two layers of this model's head make any"):
        leave_early(model, *recordings(0, [50]), 0.9)

"""Local attention: equal to a loop over |i - j| <= window, and to full attention once the window covers everything."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.attention import attend, local_attention
from sortformer.attention.local import LocalAttention
from tests.draws import draw32
from tests.masks import all_seen
from tests.oracles.attention_loops import attention


@given(
    seed=st.integers(0, 1000),
    frames=st.integers(1, 17),
    window=st.integers(1, 6),
    lengths=st.tuples(st.integers(0, 17), st.integers(1, 17)),
)
def test_it_equals_a_loop_over_the_window(seed, frames, window, lengths):
    query, key, value = draw32(seed, 3, 2, 2, frames, 4).unbind()
    valid = torch.arange(frames) < torch.tensor(lengths)[:, None]
    out = local_attention(query, key, value, valid, window).numpy()
    expected = attention(
        query.double().numpy(),
        key.double().numpy(),
        value.double().numpy(),
        lambda b, i, j: bool(valid[b, j]) and abs(i - j) <= window,
    )
    assert np.isfinite(out).all()
    somebody_seen = np.isfinite(expected)
    np.testing.assert_allclose(out[somebody_seen], expected[somebody_seen], atol=1e-5)


@given(seed=st.integers(0, 1000), frames=st.integers(1, 12), more=st.integers(0, 5))
def test_a_window_as_long_as_the_recording_is_full_attention(seed, frames, more):
    query, key, value = draw32(seed, 3, 1, 2, frames, 4).unbind()
    valid = torch.arange(frames)[None] < max(1, frames - 2)
    local = local_attention(query, key, value, valid, frames + more)
    torch.testing.assert_close(local, attend(query, key, value, valid[:, None, None]), atol=1e-6, rtol=0)


def test_blocks_of_nothing_but_padding_leave_gradients_finite():
    query, key, value = (x.requires_grad_() for x in draw32(0, 3, 1, 2, 40, 4).unbind())
    valid = torch.arange(40)[None] < 5
    out = local_attention(query, key, value, valid, 4)
    assert torch.isfinite(out).all()
    out[:, :, :5].square().sum().backward()
    for x in (query, key, value):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
        assert not x.grad[:, :, 5:].any()


def test_frames_beyond_the_window_do_not_matter():
    (query, key, value), valid = draw32(0, 3, 1, 1, 30, 4).unbind(), torch.ones(1, 30, dtype=torch.bool)
    before = local_attention(query, key, value, valid, 4)
    key, value = key.clone(), value.clone()
    key[:, :, 20:] = 100.0
    value[:, :, 20:] = -100.0
    after = local_attention(query, key, value, valid, 4)
    torch.testing.assert_close(after[:, :, :16], before[:, :, :16], atol=0, rtol=0)
    assert not torch.allclose(after[:, :, 16], before[:, :, 16])


@pytest.mark.parametrize("frames", [375, 1500])
def test_memory_grows_with_the_length_and_not_with_its_square(frames):
    shapes = []
    original = torch.nn.functional.scaled_dot_product_attention

    def watch(query, key, value, attn_mask):
        shapes.append(attn_mask.numel())
        return original(query, key, value, attn_mask=attn_mask)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", watch)
        local_attention(*draw32(0, 3, 1, 1, frames, 4).unbind(), torch.ones(1, frames, dtype=torch.bool), 125)
    assert shapes == [frames * 3 * 125]


@pytest.mark.timeout(60)
def test_a_reach_of_hours_costs_no_more_than_the_frames_that_there_are():
    x, valid = draw32(0, 1, 2, 12, 8), torch.ones(1, 12, dtype=torch.bool)
    whole = local_attention(x, x, x, valid, 10**6, causal=True)
    torch.testing.assert_close(whole, local_attention(x, x, x, valid, 12, causal=True))
    core = LocalAttention(10**6, causal=True)
    state, parts = core.init_state(x), []
    for piece in x.split(5, dim=2):
        out, state = core.step(*all_seen(piece, piece, piece), state)
        parts.append(out)
    torch.testing.assert_close(torch.cat(parts, dim=2), whole)

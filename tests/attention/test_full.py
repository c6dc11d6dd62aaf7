"""Full attention: equal to a loop in float64, and blind to what is not valid."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.attention import full_attention
from tests.draws import draw32
from tests.oracles.attention_loops import attention


@given(seed=st.integers(0, 1000), frames=st.integers(1, 9), lengths=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_it_equals_a_loop_over_the_valid_keys(seed, frames, lengths):
    query, key, value = draw32(seed, 3, 2, 2, frames, 4).unbind()
    valid = torch.arange(frames) < torch.tensor(lengths)[:, None]
    out = full_attention(query, key, value, valid, None)
    expected = attention(
        query.double().numpy(), key.double().numpy(), value.double().numpy(), lambda b, _, j: bool(valid[b, j])
    )
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-5)


def test_a_bias_is_divided_like_the_product_that_it_joins():
    query, key, value = draw32(0, 3, 1, 2, 7, 4).unbind()
    bias = draw32(1, 1, 2, 7, 7)
    valid = torch.tensor([[True, False, True, True, True, True, False]])
    out = full_attention(query, key, value, valid, bias)
    queries, keys = query.double().numpy(), key.double().numpy()
    expected = attention(
        queries,
        keys,
        value.double().numpy(),
        lambda b, _, j: bool(valid[b, j]),
        lambda b, h, i, j: float(queries[b, h, i] @ keys[b, h, j] + bias[b, h, i, j]),
    )
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-5)


def test_a_row_without_a_valid_frame_stays_finite_and_so_do_its_gradients():
    query, key, value = (x.requires_grad_() for x in draw32(0, 3, 2, 1, 5, 4).unbind())
    valid = torch.tensor([[False] * 5, [True] * 5])
    full_attention(query, key, value, valid, None).sum().backward()
    for x in (query, key, value):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()

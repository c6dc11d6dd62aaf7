"""Full attention: equal to a loop in float64, independent of invalid frames, and in little memory if long."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from sortformer.attention import MultiHeadAttention, attend
from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import FullCore
from tests.draws import draw32
from tests.masks import unpadded
from tests.oracles.attention_loops import attention


@given(seed=st.integers(0, 1000), frames=st.integers(1, 9), lengths=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_it_equals_a_loop_over_the_valid_keys(seed, frames, lengths):
    query, key, value = draw32(seed, 3, 2, 2, frames, 4).unbind()
    valid = torch.arange(frames) < torch.tensor(lengths)[:, None]
    out = attend(query, key, value, valid[:, None, None])
    expected = attention(
        query.double().numpy(), key.double().numpy(), value.double().numpy(), lambda b, _, j: bool(valid[b, j])
    )
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-5)


def test_a_bias_is_divided_like_the_product_that_it_joins():
    query, key, value = draw32(0, 3, 1, 2, 7, 4).unbind()
    bias = draw32(1, 1, 2, 7, 7)
    valid = torch.tensor([[True, False, True, True, True, True, False]])
    out = attend(query, key, value, valid[:, None, None], bias)
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
    attend(query, key, value, valid[:, None, None]).sum().backward()
    for x in (query, key, value):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()


DIM, HEADS = 8, 2


class Largest(TorchDispatchMode):
    """Record the size of the largest tensor that is created."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else (made,):
            if isinstance(one, torch.Tensor):
                self.size = max(self.size, one.untyped_storage().nbytes() // one.element_size())
        return made


def layer(position: str, causal: bool) -> MultiHeadAttention:
    torch.manual_seed(0)
    found = MultiHeadAttention(DIM, HEADS, AttentionConfig(FullCore(causal=causal), position)).double().eval()
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return found


LONG = [("xl", False), ("xl", True), ("shaw", False), ("alibi", False), ("distance_aware", True), ("none", True)]


@pytest.mark.parametrize(("position", "causal"), LONG)
def test_long_recordings_by_tiles_give_what_all_scores_at_once_do(position, causal):
    found, frames = layer(position, causal), 1024 + 130
    x, valid = draw32(0, 2, frames, DIM).double(), torch.arange(frames) < torch.tensor([[frames], [1030]])
    at_once = found(x, valid).out  # with gradients nothing is tiled
    with torch.no_grad():
        torch.testing.assert_close(found(x, valid).out[valid], at_once[valid], atol=1e-9, rtol=0)


@pytest.mark.parametrize(("position", "causal"), LONG)
def test_memory_without_gradients_is_linear_in_the_length(position, causal):
    found, frames = layer(position, causal), 2048
    with torch.no_grad(), Largest() as largest:
        found(*unpadded(draw32(0, 1, frames, DIM).double()))
    assert largest.size < frames**2 / 2

"""Rotary positions: equal to complex rotation, and a function of the distance only."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.position import Places, RotaryPosition
from tests.draws import draw32
from tests.oracles.attention_loops import rotated


def test_it_equals_complex_rotation():
    query, key = draw32(0, 2, 2, 3, 9, 6).unbind()
    turned_query, turned_key = RotaryPosition(6).rotate(query, key, Places.whole(9))
    for before, after in ((query, turned_query), (key, turned_key)):
        for index in np.ndindex(*before.shape[:3]):
            expected = rotated(before[index].double().numpy(), index[2])
            np.testing.assert_allclose(after[index].numpy(), expected, atol=1e-5)


@given(seed=st.integers(0, 1000), frames=st.integers(2, 30), data=st.data())
def test_products_depend_on_the_distance_alone(seed, frames, data):
    distance = data.draw(st.integers(0, frames - 1))
    vectors = draw32(seed, 2, 1, 1, 1, 8).expand(-1, -1, -1, frames, -1)
    query, key = RotaryPosition(8).rotate(*vectors, Places.whole(frames))
    products = (query[0, 0, distance:] * key[0, 0, : frames - distance]).sum(-1)
    torch.testing.assert_close(products, products[:1].expand(len(products)), atol=1e-4, rtol=0)


def test_lengths_of_vectors_are_kept():
    query, key = draw32(1, 2, 1, 2, 50, 8).unbind()
    turned, _ = RotaryPosition(8).rotate(query, key, Places.whole(50))
    torch.testing.assert_close(turned.norm(dim=-1), query.norm(dim=-1))


def test_it_has_nothing_to_store():
    assert not RotaryPosition(8).state_dict()


def test_a_model_in_half_precision_turns_by_exact_angles():
    query, key = draw32(1, 2, 1, 2, 3000, 8).unbind()
    turned = RotaryPosition(8).bfloat16().rotate(query, key, Places.whole(3000))
    for one, other in zip(turned, RotaryPosition(8).rotate(query, key, Places.whole(3000)), strict=True):
        assert one.equal(other)


def test_odd_heads_are_refused():
    with pytest.raises(ValueError, match="even head size, got 5"):
        RotaryPosition(5)

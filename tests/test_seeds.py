"""Seeds: any difference between the numbers gives different draws."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.seeds import mixed_seed

number = st.integers(0, 2**64 - 1)


@given(number, number, st.integers(0, 63))
def test_every_bit_of_every_number_counts(first, second, bit):
    def draw(*numbers: int) -> torch.Tensor:
        return torch.rand(4, generator=torch.Generator().manual_seed(mixed_seed(*numbers)))

    assert draw(first, second).equal(draw(first, second))
    assert not draw(first, second).equal(draw(first ^ 1 << bit, second))
    assert not draw(first, second).equal(draw(first, second ^ 1 << bit))

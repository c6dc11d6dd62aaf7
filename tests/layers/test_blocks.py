"""The laws of block variants, for every registered kind."""

import numpy as np
import pytest
import torch

from sortformer.config.mechanisms import BLOCKS
from tests.draws import draw
from tests.layers.cases import CASES, DIM, FRAMES, STACKS, build
from tests.masks import unpadded

every_stack = pytest.mark.parametrize("name", STACKS)


def test_every_kind_that_is_registered_has_an_oracle():
    assert set(CASES) == set(BLOCKS)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("seed", [0, 1])
def test_it_equals_its_oracle(name: str, seed: int):
    found, expected = CASES[name](seed)
    # The position encodings of a universal block, and the model with early exit, are computed in float32.
    np.testing.assert_allclose(found, expected, atol=1e-5)


@every_stack
def test_neither_padding_nor_other_rows_touch_a_recording(name: str):
    stack, x = build(STACKS[name][0], 0), draw(1, 2, FRAMES, DIM)
    valid = torch.arange(FRAMES) < torch.tensor([[FRAMES], [4]])
    with torch.no_grad():
        together = stack(x.masked_fill(~valid[..., None], torch.nan), valid).out
        for row, length in enumerate((FRAMES, 4)):
            alone = stack(*unpadded(x[row : row + 1, :length])).out[0]
            torch.testing.assert_close(together[row, :length], alone, atol=1e-9, rtol=0)


@every_stack
def test_gradients_are_those_of_finite_differences_and_reach_every_weight(name: str):
    """Gradients of frames are compared with differences; those of weights must exist and be finite."""
    stack, x = build(STACKS[name][0], 0), draw(2, 1, 4, DIM).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: stack(*unpadded(x)).out, x, fast_mode=True, atol=1e-5)
    stack(*unpadded(x)).out.square().sum().backward()
    for weight, parameter in stack.named_parameters():
        assert parameter.grad is not None, weight
        assert torch.isfinite(parameter.grad).all(), weight

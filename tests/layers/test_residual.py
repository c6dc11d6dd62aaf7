"""Residual connections: a sum, or the gates of GTrXL, which start close to the identity."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.config.attention import AttentionConfig
from sortformer.layers import ConformerBlock, TransformerBlock
from sortformer.layers.residual import GruResidual, SumResidual, build_residual
from tests.draws import draw
from tests.masks import unpadded
from tests.oracles.gates import gru_gate

DIM = 4


def gate(seed: int) -> GruResidual:
    layer = GruResidual(DIM).double()
    for index, parameter in enumerate(layer.parameters()):
        parameter.data = draw(100 * seed + index, *parameter.shape)
    return layer


@given(seed=st.integers(0, 100))
def test_the_gate_is_that_of_the_paper(seed: int):
    layer, x, y = gate(seed), draw(seed, 1, 3, DIM), draw(seed + 1, 1, 3, DIM)
    weights = {name: value.detach().numpy() for name, value in layer.named_parameters()}
    of_branch = dict(zip("rzg", np.split(weights["of_branch.weight"], 3), strict=True))
    of_frames = dict(zip("rz", np.split(weights["of_frames.weight"], 2), strict=True)) | {
        "g": weights["of_kept.weight"]
    }
    found = layer(x, y).detach().numpy()
    for t in range(3):
        expected = gru_gate(x[0, t].numpy(), y[0, t].numpy(), of_branch, of_frames, weights["bias"])
        np.testing.assert_allclose(found[0, t], expected, atol=1e-12)


def test_a_closed_gate_passes_the_frames_and_an_open_one_leaves_nothing_of_them():
    x, y = draw(0, 1, 3, DIM), draw(1, 1, 3, DIM)
    layer = gate(0)
    layer.bias.data.fill_(1e3)
    torch.testing.assert_close(layer(x, y), x)
    layer.bias.data.fill_(-1e3)
    assert (layer(x, y).abs() <= 1).all()  # only the tanh is left


def test_its_gradients_are_those_of_finite_differences():
    layer = gate(0)
    inputs = (draw(0, 1, 2, DIM).requires_grad_(), draw(1, 1, 2, DIM).requires_grad_())
    assert torch.autograd.gradcheck(layer, inputs)


def test_a_sum_has_no_weights_and_is_a_sum():
    assert isinstance(build_residual("sum", DIM), SumResidual)
    assert not build_residual("sum", DIM).state_dict()
    x, y = draw(0, 1, 3, DIM), draw(1, 1, 3, DIM)
    assert build_residual("sum", DIM)(x, y).equal(x + y)


@pytest.mark.parametrize("kind", ["transformer", "conformer"])
def test_a_gated_block_begins_nearer_to_nothing_than_a_summing_one(kind: str):
    def built(residual: str) -> torch.nn.Module:
        torch.manual_seed(0)
        attention = AttentionConfig()
        if kind == "transformer":
            return TransformerBlock(
                16, 2, 32, norm="pre", activation="relu", attention=attention, dropout=0.0, residual=residual
            )
        return ConformerBlock(16, 2, 32, 5, conv_norm="layer", attention=attention, dropout=0.0, residual=residual)

    x = torch.nn.functional.layer_norm(torch.randn(2, 9, 16, generator=torch.Generator().manual_seed(1)), (16,))
    gated, summed = built("gru"), built("sum")
    with torch.no_grad():
        for block in (gated, summed):
            for layer in block.modules():
                if isinstance(layer, torch.nn.Linear) and layer.bias is not None:
                    layer.weight.mul_(3)  # so that the branches matter
        assert (gated(*unpadded(x)).out - x).abs().mean() < 0.5 * (summed(*unpadded(x)).out - x).abs().mean()

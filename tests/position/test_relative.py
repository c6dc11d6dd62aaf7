"""Shaw's and Transformer-XL's relative positions: equal to scores pair by pair, and shift-invariant."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from sortformer.position import Places, Position, ShawPosition, TransformerXLPosition
from sortformer.position.absolute import sinusoids
from tests.draws import draw32
from tests.oracles import attention_loops as oracle


def scores(position: Position, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    places = Places.whole(query.shape[2])
    bias = position.bias(query, places)
    query, key = position.rotate(query, key, places)
    assert bias is not None
    return query @ key.transpose(-1, -2) + bias


def transformer_xl(heads: int, head_dim: int) -> TransformerXLPosition:
    torch.manual_seed(0)
    position = TransformerXLPosition(heads, head_dim)
    nn.init.normal_(position.content_bias)
    nn.init.normal_(position.distance_bias)
    return position


@given(positions=st.lists(st.floats(-200, 200, width=32), min_size=1, max_size=5), dim=st.integers(1, 9))
def test_sinusoids_are_defined_at_every_real_position(positions, dim):
    codes = sinusoids(torch.tensor(positions), dim).numpy()
    np.testing.assert_allclose(codes, [oracle.sinusoid(position, dim) for position in positions], atol=1e-4)


@pytest.mark.parametrize(("frames", "reach"), [(1, 3), (4, 8), (12, 3), (12, 11)])
def test_shaw_equals_the_loop_over_pairs(frames, reach):
    torch.manual_seed(0)
    position = ShawPosition(4, max_distance=reach)
    query, key = draw32(1, 2, 2, 3, frames, 4).unbind()
    with torch.no_grad():
        found = scores(position, query, key)
    table = position.keys.detach().double().numpy()
    for b, h, i, j in np.ndindex(2, 3, frames, frames):
        q, k = query[b, h, i].double().numpy(), key[b, h, j].double().numpy()
        assert found[b, h, i, j].item() == pytest.approx(oracle.shaw_score(q, k, table, i, j), abs=1e-5)


@pytest.mark.parametrize("frames", [1, 2, 7, 12])
def test_transformer_xl_equals_the_loop_over_pairs(frames):
    position = transformer_xl(heads=3, head_dim=4)
    query, key = draw32(1, 2, 2, 3, frames, 4).unbind()
    with torch.no_grad():
        found = scores(position, query, key)
    rows = position.projection.weight.detach().double().numpy().reshape(3, 4, 12)
    u, v = (bias.detach().double().numpy() for bias in (position.content_bias, position.distance_bias))
    for b, h, i, j in np.ndindex(2, 3, frames, frames):
        q, k = query[b, h, i].double().numpy(), key[b, h, j].double().numpy()
        expected = oracle.transformer_xl_score(q, k, rows[h], u[h], v[h], i, j)
        assert found[b, h, i, j].item() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("build", [lambda: ShawPosition(4, max_distance=3), lambda: transformer_xl(2, 4)])
def test_scores_of_equal_frames_depend_on_the_distance_alone(build):
    query, key = draw32(2, 2, 1, 2, 1, 4).expand(-1, -1, -1, 9, -1).unbind()
    with torch.no_grad():
        found = scores(build(), query, key)
    torch.testing.assert_close(found[..., 1:, 1:], found[..., :-1, :-1], atol=1e-5, rtol=0)
    assert not torch.allclose(found[..., 0, 1], found[..., 1, 0])


def test_gradients_reach_every_parameter():
    for position in (ShawPosition(4, max_distance=3), transformer_xl(2, 4)):
        scores(position, *draw32(3, 2, 1, 2, 6, 4).unbind()).square().sum().backward()
        for parameter in position.parameters():
            assert parameter.grad is not None
            assert parameter.grad.abs().sum() > 0

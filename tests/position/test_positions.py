"""The laws of positions, for every registered one, in the layer that uses it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import AttentionConfig, Position
from sortformer.config.cores import Core, FullCore, LocalCore
from sortformer.config.mechanisms import CORES, POSITIONS
from tests.masks import unpadded
from tests.oracles.attention_loops import attention
from tests.position.cases import CASES, DEPTH

DIM, HEADS, FRAMES = 8, 2, 11
LENGTHS = (FRAMES, 8)
VALID = torch.arange(FRAMES) < torch.tensor(LENGTHS)[:, None]
TOLERANCE = 1e-5  # codes are computed in float32 whatever the layer is in

every_position = pytest.mark.parametrize("position", POSITIONS)
WITHIN = [
    (position, core)
    for core in (FullCore(), LocalCore(window_frames=3))
    for position, facts in POSITIONS.items()
    if facts.how is None or facts.how in CORES[core.kind].positions
]


def build(position: Position, core: Core | None = None) -> MultiHeadAttention:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = AttentionConfig(core or FullCore(), position, learned_positions=2 * FRAMES)
        layer = MultiHeadAttention(DIM, HEADS, config, depth=DEPTH).double()
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return layer


def draw(rows: int = 2, frames: int = FRAMES) -> Tensor:
    return torch.randn(rows, frames, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def dense(layer: MultiHeadAttention, x: np.ndarray, position: Position, window: int) -> np.ndarray:
    """The whole layer by loops, over the frames at most ``window`` away."""
    case, weights = CASES[position], {name: value.numpy() for name, value in layer.state_dict().items()}
    placed = np.array([[case.embed(weights, frame, t) for t, frame in enumerate(row)] for row in x])

    def project(name: str) -> np.ndarray:
        flat = placed @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return flat.reshape(len(x), FRAMES, HEADS, -1).transpose(0, 2, 1, 3)

    query, key, value = project("query"), project("key"), project("value")
    mixed = attention(
        query,
        key,
        value,
        lambda b, i, j: bool(VALID[b, j]) and abs(i - j) <= window,
        lambda b, h, i, j: case.score(weights, h, query[b, h, i], key[b, h, j], i, j),
    )
    return mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ weights["out.weight"].T + weights["out.bias"]


def test_every_position_that_is_registered_has_an_oracle():
    assert set(CASES) == set(POSITIONS)


@pytest.mark.parametrize(("position", "core"), WITHIN)
def test_a_layer_equals_its_oracle(position: Position, core: FullCore | LocalCore):
    layer, x = build(position, core), draw()
    with torch.no_grad():
        out = layer(x.masked_fill(~VALID[..., None], torch.nan), VALID).out
    expected = dense(layer, x.numpy(), position, FRAMES if isinstance(core, FullCore) else core.window_frames)
    np.testing.assert_allclose(out[VALID].numpy(), expected[VALID.numpy()], atol=TOLERANCE)


@every_position
def test_gradients_are_those_of_finite_differences_and_reach_every_weight(position: Position):
    layer, x = build(position), draw(rows=1, frames=5).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(*unpadded(x)).out, x, fast_mode=True, atol=1e-4)
    layer(*unpadded(x)).out.square().sum().backward()
    for name, parameter in layer.position.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@every_position
def test_where_a_recording_begins_is_nothing_to_relative_positions_and_something_to_absolute_ones(position: Position):
    """Masked frames of silence before it shift the whole recording."""
    layer, x = build(position), draw(rows=1)
    late = torch.cat((draw(rows=1, frames=4), x), dim=1)
    valid = torch.arange(FRAMES + 4)[None] >= 4
    with torch.no_grad():
        moved = layer(late, valid).out[:, 4:]
        same = torch.allclose(moved, layer(*unpadded(x)).out, atol=TOLERANCE, rtol=0)
    assert same is CASES[position].relative


def test_days_into_a_stream_rotations_are_as_fine_as_at_its_start():
    layer, x = build("rope", LocalCore(window_frames=3, causal=True)), draw(rows=1)
    start = layer.init_state(x)
    with torch.no_grad():
        first = layer(*unpadded(x), start).out
        later = layer(*unpadded(x), replace(start, clock=start.clock + 10_000_000)).out
    torch.testing.assert_close(later, first, atol=1e-6, rtol=0)


@every_position
def test_order_matters_to_all_but_none(position: Position):
    layer, x = build(position), draw(rows=1)
    shuffled = torch.randperm(FRAMES, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        moved, whole = (layer(*unpadded(each)).out for each in (x[:, shuffled], x))
        same = torch.allclose(moved, whole[:, shuffled], atol=TOLERANCE, rtol=0)
    assert same is (position == "none")


def test_slopes_of_zero_are_full_attention():
    layer, plain, x = build("alibi"), build("none"), draw()
    layer.position.slopes.zero_()  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
    with torch.no_grad():
        torch.testing.assert_close(layer(x, VALID).out, plain(x, VALID).out, atol=1e-12, rtol=0)


def test_distances_that_count_for_nothing_leave_rectified_attention():
    layer, plain, x = build("distance_aware"), build("none"), draw()
    with torch.no_grad():
        layer.position.slope.zero_()  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
        query, key, value = (plain._heads(part, x) for part in (plain.query, plain.key, plain.value))
        weights = ((query @ key.transpose(-1, -2)).relu() * (DIM // HEADS) ** -0.5).softmax(dim=-1)
        torch.testing.assert_close(layer(*unpadded(x)).out, plain._merged(weights @ value), atol=1e-9, rtol=0)

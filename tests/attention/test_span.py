"""The auxiliary loss of adaptive spans: how far queries look; it trains only the spans, and shortens them."""

import numpy as np
import pytest
import torch
from torch import Tensor

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import SpanCore
from sortformer.config.memories import CompressiveMemory, TransformerXLMemory
from tests.masks import unpadded

DIM, HEADS, FRAMES, LONGEST = 8, 2, 9, 5
LENGTHS = (FRAMES, 6)
VALID = torch.arange(FRAMES) < torch.tensor(LENGTHS)[:, None]


def build(dynamic: bool, **options) -> MultiHeadAttention:
    core = SpanCore(max_frames=LONGEST, ramp_frames=3, dynamic=dynamic, causal=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = MultiHeadAttention(DIM, HEADS, AttentionConfig(core, **options)).double()
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return layer


def draw(rows: int = 2) -> Tensor:
    return torch.randn(rows, FRAMES, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize(("dynamic", "position"), [(False, "none"), (False, "rope"), (True, "none"), (True, "shaw")])
def test_it_is_the_mean_of_the_spans_one_by_one(dynamic: bool, position: str):
    layer, x = build(dynamic, position=position), draw()
    weights = {name: value.numpy() for name, value in layer.state_dict().items()}
    query = layer._heads(layer.query, x).detach().numpy()
    shares = []
    for b, length in enumerate(LENGTHS):
        for h, i in np.ndindex(HEADS, length):
            level = weights["core.level"][h]
            if dynamic:
                level += weights["core.direction"][h] @ query[b, h, i]
            shares.append(1 / (1 + np.exp(-level)))
    found = layer(x.masked_fill(~VALID[..., None], torch.nan), VALID).losses
    assert set(found) == {"span"}
    assert found["span"].item() == pytest.approx(np.mean(shares), abs=1e-12)


@pytest.mark.parametrize("dynamic", [False, True])
def test_its_step_makes_spans_shorter_and_teaches_keys_and_values_nothing(dynamic: bool):
    layer, x = build(dynamic), draw()
    before = layer(x, VALID).losses["span"]
    before.backward()
    touched = {name for name, parameter in layer.named_parameters() if parameter.grad is not None}
    assert touched == {"core.level", *({"core.direction", "query.weight", "query.bias"} if dynamic else ())}
    with torch.no_grad():
        for parameter in layer.parameters():
            if parameter.grad is not None:
                parameter.sub_(0.1 * parameter.grad)
    assert layer(x, VALID).losses["span"] < before


def test_what_half_precision_learns_of_it_is_finite():
    """At the very end of a span the gradient of the log weight is steep, and float16 ends at 65,504."""
    for seed in range(12):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layer = MultiHeadAttention(
                32, HEADS, AttentionConfig(SpanCore(max_frames=8, ramp_frames=4, dynamic=True), "coordinates")
            )
            for parameter in layer.parameters():
                torch.nn.init.normal_(parameter, std=0.5)
            x = torch.randn(2, 60, 32)
        layer.half()(*unpadded(x.half())).out.float().square().mean().backward()
        for name, parameter in layer.named_parameters():
            assert parameter.grad is not None
            assert torch.isfinite(parameter.grad).all(), (seed, name)


def test_there_is_none_where_nothing_is_trained():
    layer = build(dynamic=True).eval()
    assert layer(draw(), VALID).losses == {}


def test_with_a_memory_it_is_the_mean_over_all_frames_and_stands_beside_the_memory_s():
    layer, x = build(dynamic=True, memory=TransformerXLMemory(frames=4, chunk_frames=4)), draw(1)
    alone = build(dynamic=True)(*unpadded(x)).losses["span"]
    torch.testing.assert_close(layer(*unpadded(x)).losses["span"], alone)
    both = build(
        dynamic=False,
        memory=CompressiveMemory(frames=2, compressed_frames=2, ratio=2, chunk_frames=3, loss="attention"),
    )
    assert set(both(*unpadded(x)).losses) == {"span", "memory_attention"}


def test_a_row_of_nothing_costs_nothing():
    nothing = torch.zeros(1, FRAMES, dtype=torch.bool)
    assert build(dynamic=True)(draw(1), nothing).losses["span"].item() == 0.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_where_a_span_ends_half_precision_has_a_gradient(dtype: torch.dtype):
    core = SpanCore(max_frames=4, ramp_frames=3)  # untrained, a weight is exactly 0 five frames away
    layer = MultiHeadAttention(DIM, HEADS, AttentionConfig(core)).to(dtype)
    layer(*unpadded(draw().to(dtype))).out.square().sum().backward()
    for parameter in layer.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()

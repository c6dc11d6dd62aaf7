"""The wrapper: projections, positions and core put together."""

import numpy as np
import pytest
import torch

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import FullCore, LocalCore
from tests.oracles import attention_loops as oracle

DIM, HEADS, FRAMES = 8, 2, 11


def build(position: str, window: int | None = None) -> MultiHeadAttention:
    torch.manual_seed(0)
    core = FullCore() if window is None else LocalCore(window_frames=window)
    module = MultiHeadAttention(DIM, HEADS, AttentionConfig(core, position))
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


def input_frames(rows: int = 2) -> torch.Tensor:
    return torch.randn(rows, FRAMES, DIM, generator=torch.Generator().manual_seed(1))


def dense(module: MultiHeadAttention, x: torch.Tensor, valid: torch.Tensor, position: str, window: int | None):
    """The whole module by loops in float64."""
    weights = {name: value.double().numpy() for name, value in module.state_dict().items()}
    frames = x.double().numpy()

    def project(name: str) -> np.ndarray:
        flat = frames @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return flat.reshape(len(frames), FRAMES, HEADS, -1).transpose(0, 2, 1, 3)

    query, key, value = project("query"), project("key"), project("value")

    def score(b: int, h: int, i: int, j: int) -> float:
        q, k = query[b, h, i], key[b, h, j]
        if position == "rope":
            return float(oracle.rotated(q, i) @ oracle.rotated(k, j))
        if position == "shaw":
            return oracle.shaw_score(q, k, weights["position.keys"], i, j)
        if position == "xl":
            head = weights["position.projection.weight"].reshape(HEADS, -1, DIM)[h]
            u, v = weights["position.content_bias"][h], weights["position.distance_bias"][h]
            return oracle.transformer_xl_score(q, k, head, u, v, i, j)
        return float(q @ k)

    def may_attend(b: int, i: int, j: int) -> bool:
        return bool(valid[b, j]) and (window is None or abs(i - j) <= window)

    mixed = oracle.attention(query, key, value, may_attend, score).transpose(0, 2, 1, 3).reshape(frames.shape)
    return mixed @ weights["out.weight"].T + weights["out.bias"]


@pytest.mark.parametrize(
    ("position", "window"), [("none", None), ("rope", None), ("shaw", None), ("xl", None), ("none", 3), ("rope", 3)]
)
def test_it_equals_the_dense_loop(position, window):
    module, x = build(position, window), input_frames()
    valid = torch.arange(FRAMES) < torch.tensor([[FRAMES], [FRAMES - 2]])
    with torch.no_grad():
        out = module(x, valid)
    expected = dense(module, x, valid, position, window)
    np.testing.assert_allclose(out[valid].numpy(), expected[valid.numpy()], atol=2e-5)


@pytest.mark.parametrize(("position", "window"), [("none", None), ("rope", 3), ("shaw", None), ("xl", None)])
def test_neither_padding_nor_other_rows_touch_a_frame(position, window):
    module, x = build(position, window), input_frames(3)
    lengths = [FRAMES, 4, 7]
    valid = torch.arange(FRAMES) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        batch = module(x.masked_fill(~valid[..., None], torch.nan), valid)
        for row, length in enumerate(lengths):
            alone = module(x[row : row + 1, :length])
            torch.testing.assert_close(batch[row, :length], alone[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("position", ["rope", "shaw", "xl"])
def test_order_matters_with_positions(position):
    module, x = build(position), input_frames(1)
    shuffled = torch.randperm(FRAMES, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        assert not torch.allclose(module(x[:, shuffled]), module(x)[:, shuffled], atol=1e-3)


def test_order_does_not_matter_without_positions():
    module, x = build("none"), input_frames(1)
    shuffled = torch.randperm(FRAMES, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        torch.testing.assert_close(module(x[:, shuffled]), module(x)[:, shuffled], atol=1e-5, rtol=0)


def test_query_key_and_value_can_do_without_bias():
    module = MultiHeadAttention(DIM, HEADS, AttentionConfig(), qkv_bias=False)
    assert [name for name in module.state_dict() if name.endswith("bias")] == ["out.bias"]

"""The layer of projections, positions and core; its comparison with loops is in ``tests/position``."""

import pytest
import torch

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import FullCore, LocalCore
from tests.masks import unpadded

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


@pytest.mark.parametrize(("position", "window"), [("none", None), ("rope", 3), ("shaw", None), ("xl", None)])
def test_neither_padding_nor_other_rows_touch_a_frame(position, window):
    module, x = build(position, window), input_frames(3)
    lengths = [FRAMES, 4, 7]
    valid = torch.arange(FRAMES) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        batch = module(x.masked_fill(~valid[..., None], torch.nan), valid).out
        for row, length in enumerate(lengths):
            alone = module(*unpadded(x[row : row + 1, :length])).out
            torch.testing.assert_close(batch[row, :length], alone[0], atol=1e-5, rtol=0)


def test_query_key_and_value_can_do_without_bias():
    module = MultiHeadAttention(DIM, HEADS, AttentionConfig(), qkv_bias=False)
    assert [name for name in module.state_dict() if name.endswith("bias")] == ["out.bias"]

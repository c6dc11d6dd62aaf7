"""The Conformer block: the paper's formula in float64 with both norms, and the reach of its frames."""

import numpy as np
import pytest
import torch
from torch import nn

from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import FullCore, LocalCore
from sortformer.layers import ConformerBlock
from tests.masks import unpadded
from tests.oracles import blocks as oracle

DIM, HEADS, FF, KERNEL = 8, 2, 12, 5


def build(conv_norm: str = "layer", position: str = "rope", window: int | None = None) -> ConformerBlock:
    torch.manual_seed(0)
    core = FullCore() if window is None else LocalCore(window_frames=window)
    attention = AttentionConfig(core, position)
    block = ConformerBlock(DIM, HEADS, FF, KERNEL, conv_norm=conv_norm, attention=attention, dropout=0.0).eval()
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.4)
    if isinstance(block.convolution.norm, nn.BatchNorm1d):
        block.convolution.norm.running_mean.copy_(torch.linspace(-1, 1, DIM))
        block.convolution.norm.running_var.copy_(torch.linspace(0.5, 2, DIM))
    return block


def frames(rows: int, count: int) -> torch.Tensor:
    return torch.randn(rows, count, DIM, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("conv_norm", ["layer", "batch"])
def test_it_equals_the_papers_formula(conv_norm):
    """The attention is taken from the block: it has its own oracle."""
    block, x = build(conv_norm), frames(1, 9)
    weights = {name: value.double().numpy() for name, value in block.state_dict().items()}
    convolution = {
        name.removeprefix("convolution."): value for name, value in weights.items() if name.startswith("convolution.")
    }
    expected = x[0].double().numpy()
    expected = expected + 0.5 * oracle.feed_forward(expected, weights, "feed_forward_1")
    normed = oracle.layer_norm(expected, weights["attention_norm.weight"], weights["attention_norm.bias"])
    with torch.no_grad():
        expected = expected + block.attention(*unpadded(torch.from_numpy(normed).float()[None])).out[0].double().numpy()
        found = block(*unpadded(x)).out[0].numpy()
    expected = expected + oracle.conformer_convolution(expected, convolution, conv_norm)
    expected = expected + 0.5 * oracle.feed_forward(expected, weights, "feed_forward_2")
    expected = oracle.layer_norm(expected, weights["norm.weight"], weights["norm.bias"])
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("conv_norm", ["layer", "batch"])
@pytest.mark.parametrize(
    ("position", "window"), [("none", None), ("rope", None), ("rope", 3), ("shaw", None), ("xl", None)]
)
def test_neither_padding_nor_other_rows_touch_a_frame(conv_norm, position, window):
    block, x = build(conv_norm, position, window), frames(3, 13)
    lengths = (13, 4, 9)
    valid = torch.arange(13) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        batch = block(x.masked_fill(~valid[..., None], torch.nan), valid).out
        for row, length in enumerate(lengths):
            alone = block(*unpadded(x[row : row + 1, :length])).out
            torch.testing.assert_close(batch[row, :length], alone[0], atol=1e-5, rtol=0)


def test_with_a_window_a_frame_sees_window_and_kernel_and_no_more():
    block, x = build(window=3), frames(1, 40)
    changed = x.clone()
    changed[:, 20] += 1.0
    with torch.no_grad():
        moved = (block(*unpadded(changed)).out != block(*unpadded(x)).out).any(-1)[0].nonzero().flatten()
    reach = 3 + KERNEL // 2
    assert moved.min() >= 20 - reach
    assert moved.max() <= 20 + reach
    assert 20 in moved


def test_layer_norm_keeps_rows_apart_in_training_and_batch_norm_does_not():
    for conv_norm, apart in (("layer", True), ("batch", False)):
        block, x = build(conv_norm).train(), frames(2, 9)
        with torch.no_grad():
            together, alone = block(*unpadded(x)).out[:1], block(*unpadded(x[:1])).out
        assert torch.allclose(together, alone, atol=1e-5) is apart

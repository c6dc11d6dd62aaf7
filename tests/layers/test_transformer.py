"""The Transformer block, with pre- and post-norm: equal to PyTorch's own layer with the same weights."""

import pytest
import torch
from torch import nn

from sortformer.config.attention import AttentionConfig
from sortformer.layers import TransformerBlock
from tests.masks import unpadded

DIM, HEADS, FF = 8, 2, 12


def build(
    norm: str = "pre", activation: str = "relu", position: str = "none", dropout: float = 0.0, residual: str = "sum"
):
    torch.manual_seed(0)
    block = TransformerBlock(
        DIM,
        HEADS,
        FF,
        norm=norm,
        activation=activation,
        attention=AttentionConfig(position=position),
        dropout=dropout,
        residual=residual,
    ).eval()
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.4)
    return block


def frames(rows: int, count: int) -> torch.Tensor:
    return torch.randn(rows, count, DIM, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_it_is_pytorchs_encoder_layer(norm, activation):
    block, x = build(norm, activation), frames(2, 9)
    peer = nn.TransformerEncoderLayer(
        DIM, HEADS, FF, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
    ).eval()
    ours = block.state_dict()
    parts = [f"attention.{name}" for name in ("query", "key", "value")]
    theirs = {
        "self_attn.in_proj_weight": torch.cat([ours[f"{part}.weight"] for part in parts]),
        "self_attn.in_proj_bias": torch.cat([ours[f"{part}.bias"] for part in parts]),
    }
    renamed = {
        "self_attn.out_proj": "attention.out",
        "linear1": "expand",
        "linear2": "contract",
        "norm1": "attention_norm",
        "norm2": "feed_forward_norm",
    }
    for their_name, our_name in renamed.items():
        for kind in ("weight", "bias"):
            theirs[f"{their_name}.{kind}"] = ours[f"{our_name}.{kind}"]
    peer.load_state_dict(theirs)
    valid = torch.arange(9) < torch.tensor([[9], [5]])
    with torch.no_grad():
        expected = peer(x, src_key_padding_mask=~valid)
        torch.testing.assert_close(block(x, valid).out[valid], expected[valid], atol=1e-5, rtol=0)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("position", ["rope", "shaw", "xl"])
def test_neither_padding_nor_other_rows_touch_a_frame(norm, position):
    block, x = build(norm, position=position), frames(2, 9)
    valid = torch.arange(9) < torch.tensor([[9], [5]])
    with torch.no_grad():
        batch = block(x.masked_fill(~valid[..., None], torch.nan), valid).out
        for row, length in enumerate((9, 5)):
            alone = block(*unpadded(x[row : row + 1, :length])).out
            torch.testing.assert_close(batch[row, :length], alone[0], atol=1e-5, rtol=0)


def test_dropout_acts_in_training_alone():
    block, given = build(dropout=0.5), unpadded(frames(1, 9))
    torch.testing.assert_close(block(*given).out, block(*given).out, atol=0, rtol=0)
    block.train()
    assert not torch.allclose(block(*given).out, block(*given).out)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_closed_gates_let_nothing_of_a_branch_through(norm):
    block, x = build(norm, residual="gru"), frames(2, 9)
    for gate in (block.attention_residual, block.feed_forward_residual):
        nn.init.constant_(gate.bias, 100.0)
    expected = x if norm == "pre" else block.feed_forward_norm(block.attention_norm(x))
    torch.testing.assert_close(block(*unpadded(x)).out, expected)

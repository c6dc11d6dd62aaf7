"""Positions against public implementations, where these are installed.

Run on rotary-embedding-torch 0.9.1, x-transformers 2.31.10 and transformers 5.23.0, with torch 2.13.0.
"""

import pytest
import torch

from sortformer.position import AlibiPosition, Places, RotaryPosition, TransformerXLPosition
from tests.draws import draw

pytestmark = pytest.mark.oracle


def peer(module: str, package: str):
    return pytest.importorskip(module, reason=f"{package} is absent")


def test_rope_equals_rotary_embedding_torch():
    """It rotates neighbouring channels together; ours the first half with the second."""
    theirs = peer("rotary_embedding_torch", "rotary-embedding-torch").RotaryEmbedding(8)
    query, key = draw(0, 2, 2, 3, 9, 8).unbind()
    halves = torch.cat((torch.arange(0, 8, 2), torch.arange(1, 8, 2)))
    turned = RotaryPosition(8).rotate(query[..., halves], key[..., halves], Places.whole(9))
    for ours, x in zip(turned, (query, key), strict=True):
        torch.testing.assert_close(ours, theirs.rotate_queries_or_keys(x)[..., halves], atol=1e-5, rtol=0)


@pytest.mark.parametrize("heads", [2, 8])
def test_alibi_equals_x_transformers(heads: int):
    """For numbers of heads that are powers of two, as in the paper; except the last head, which has no slope here."""
    theirs = peer("x_transformers.x_transformers", "x-transformers").AlibiPositionalBias(heads)
    bias = AlibiPosition(heads, head_dim=16).bias(torch.zeros(1, heads, 7, 16), Places.whole(7))
    torch.testing.assert_close((bias / 4)[0, :-1], theirs(7, 7)[:-1], atol=1e-6, rtol=0)


def test_transformer_xl_equals_xlnet():
    """Its attention over projected encodings of distances, like ours."""
    xlnet = peer("transformers.models.xlnet.modeling_xlnet", "transformers")
    heads, head_dim, frames = 3, 4, 7
    theirs = xlnet.XLNetRelativeAttention(
        xlnet.XLNetConfig(d_model=heads * head_dim, n_head=heads, d_inner=8, n_layer=1, dropout=0.0)
    ).double()
    ours = TransformerXLPosition(heads, head_dim).double()
    with torch.no_grad():
        for mine, its in ((ours.content_bias, theirs.r_w_bias), (ours.distance_bias, theirs.r_r_bias)):
            mine.copy_(torch.nn.init.normal_(its))
    query, key, value = draw(1, 3, 2, heads, frames, head_dim).unbind()
    codes = ours.codes(Places.whole(frames + 1))[..., :-1].permute(2, 0, 1)  # (2 T, H, d): of T, ..., 1 - T
    first = [x.permute(2, 0, 1, 3) for x in (query, key, value)]  # (T, B, H, d)
    expected = theirs.rel_attn_core(*first, codes[:, None].expand(-1, 2, -1, -1)).permute(1, 2, 0, 3)
    places = Places.whole(frames)
    asked, keys = ours.rotate(query, key, places)
    scores = (asked @ keys.transpose(-1, -2) + ours.bias(query, places)) * head_dim**-0.5
    torch.testing.assert_close(scores.softmax(dim=-1) @ value, expected, atol=1e-9, rtol=0)

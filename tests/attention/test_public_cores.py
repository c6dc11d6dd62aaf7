"""Cores against public implementations, where these are installed and equivalent.

Run on performer-pytorch 1.1.4, linformer 0.2.3, local-attention 1.11.2, reformer-pytorch 1.4.4, sinkhorn-transformer
0.11.4, routing-transformer 1.6.1 and transformers 5.23.0, with torch 2.13.0.
"""

import pytest
import torch
from torch import Tensor, nn

from sortformer.attention import Context, Core, MultiHeadAttention, build_core
from sortformer.attention.sinkhorn import sinkhorn
from sortformer.config import cores
from sortformer.config.attention import AttentionConfig
from tests.draws import draw
from tests.masks import all_seen, unpadded

pytestmark = pytest.mark.oracle

HEADS, DIM = 2, 4


def peer(module: str, package: str):
    return pytest.importorskip(module, reason=f"{package} is absent")


def build(config: cores.Core) -> Core:
    return build_core(config, HEADS, DIM).double().eval()


@pytest.mark.parametrize("causal", [False, True])
def test_favor_equals_performer_pytorch(causal: bool):
    """With its directions, and without the epsilon that it adds to each feature, which ours does not add.

    Its directions are not uniform, and its causal form scales keys by the maximum of all, later ones included; the
    former are copied, and the latter cancels without an epsilon.
    """
    performer = peer("performer_pytorch.performer_pytorch", "performer-pytorch")
    core = build(cores.FavorCore(features=6, causal=causal))
    directions = performer.gaussian_orthogonal_random_matrix(6, DIM).double()
    core.load_state_dict({"directions": directions})
    query, key, value = draw(0, 3, 2, HEADS, 9, DIM).unbind()
    features = [
        performer.softmax_kernel(x, projection_matrix=directions, is_query=asking, eps=0.0)
        for x, asking in ((query, True), (key, False))
    ]
    mix = performer.causal_linear_attention_noncuda if causal else performer.linear_attention
    expected = mix(*features, value, **({"eps": 0.0} if causal else {}))
    torch.testing.assert_close(core(*all_seen(query, key, value)), expected, atol=1e-9, rtol=0)


def test_relu_features_equal_performer_pytorch():
    performer = peer("performer_pytorch.performer_pytorch", "performer-pytorch")
    core = build(cores.FavorCore(features=6, kernel="relu"))
    attention = performer.FastAttention(DIM, nb_features=6, generalized_attention=True).double()
    core.load_state_dict({"directions": attention.projection_matrix})
    query, key, value = draw(1, 3, 2, HEADS, 9, DIM).unbind()
    torch.testing.assert_close(core(*all_seen(query, key, value)), attention(query, key, value), atol=1e-9, rtol=0)


@pytest.mark.parametrize("frames", [12, 7])
def test_learned_linformer_equals_linformer(frames: int):
    """For recordings as long as its projection, and for shorter ones, which use the part of it that they need."""
    linformer = peer("linformer", "linformer")
    theirs = linformer.LinformerSelfAttention(HEADS * DIM, seq_len=12, k=4, heads=HEADS).double()
    config = cores.LinformerCore(ratio=3, projection="learned", chunk_frames=12)
    ours = MultiHeadAttention(HEADS * DIM, HEADS, AttentionConfig(config), qkv_bias=False).double()
    names = {"query": "to_q", "key": "to_k", "value": "to_v", "out": "to_out"}
    weights = {
        f"{name}.{kind}": value
        for name, theirs_name in names.items()
        for kind, value in getattr(theirs, theirs_name).state_dict().items()
    }
    ours.load_state_dict(weights | {"core.key_weight": theirs.proj_k.T, "core.value_weight": theirs.proj_v.T})
    x = draw(2, 2, frames, HEADS * DIM)
    torch.testing.assert_close(ours(*unpadded(x)).out, theirs(x), atol=1e-9, rtol=0)


def test_block_local_equals_local_attention():
    local = peer("local_attention", "local-attention")
    query, key, value = draw(3, 3, 2, HEADS, 12, DIM).unbind()
    valid = torch.arange(12) < torch.tensor([[12], [8]])
    theirs = local.LocalAttention(window_size=3, use_rotary_pos_emb=False)
    expected = theirs(*(x.flatten(0, 1) for x in (query, key, value)), mask=valid).unflatten(0, (2, HEADS))
    out = build(cores.BlockLocalCore(block_frames=3, neighbours=1))(query, key, value, Context(valid))
    real = valid[:, None, :, None].expand_as(out)
    torch.testing.assert_close(out[real], expected[real], atol=1e-9, rtol=0)


def test_causal_windows_equal_local_attention():
    local = peer("local_attention", "local-attention")
    query, key, value = draw(4, 3, 2, HEADS, 12, DIM).unbind()
    theirs = local.LocalAttention(window_size=3, causal=True, exact_windowsize=True, use_rotary_pos_emb=False)
    expected = theirs(*(x.flatten(0, 1) for x in (query, key, value))).unflatten(0, (2, HEADS))
    out = build(cores.LocalCore(window_frames=3, causal=True))(*all_seen(query, key, value))
    torch.testing.assert_close(out, expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("tokens", [0, 2])
def test_windows_and_global_frames_equal_longformer(tokens: int):
    """With its projections of global frames set to those of the others. Its softmax is always in float32."""
    longformer = peer("transformers.models.longformer.modeling_longformer", "transformers")
    width, frames, window = HEADS * DIM, 16, 2
    config = longformer.LongformerConfig(
        hidden_size=width, num_attention_heads=HEADS, attention_window=[2 * window], attention_probs_dropout_prob=0.0
    )
    theirs = longformer.LongformerSelfAttention(config, layer_id=0).double().eval()
    for name in ("query", "key", "value"):
        getattr(theirs, f"{name}_global").load_state_dict(getattr(theirs, name).state_dict())
    core = cores.LocalCore(window_frames=window)
    if tokens:
        core = cores.GlobalLocalCore(window_frames=window, global_frames=tokens)
    ours = MultiHeadAttention(width, HEADS, AttentionConfig(core)).double().eval()
    ours.load_state_dict(
        {key: value for key, value in theirs.state_dict().items() if "global" not in key}
        | {"out.weight": torch.eye(width), "out.bias": torch.zeros(width)}
    )
    x, valid = draw(5, 2, frames, width), torch.arange(frames) < torch.tensor([[frames], [11]])
    everywhere = (torch.arange(frames) < tokens).expand(2, -1)
    mask = torch.zeros(2, frames, dtype=x.dtype).masked_fill(~valid, -10_000.0).masked_fill(everywhere, 10_000.0)
    expected = theirs(
        x,
        attention_mask=mask,
        is_index_masked=~valid,
        is_index_global_attn=everywhere,
        is_global_attn=tokens > 0,
    )[0]
    torch.testing.assert_close(ours(x, valid).out[valid], expected[valid], atol=1e-6, rtol=0)


@pytest.mark.parametrize("rounds", [1, 3])
def test_reformer_equals_reformer_pytorch(rounds: int):
    """With attention within buckets only, and pairs counted as often as they meet, as in ours."""
    reformer = peer("reformer_pytorch", "reformer-pytorch")
    core = build(cores.ReformerCore(buckets=4, rounds=rounds, chunk_frames=4))
    theirs = reformer.LSHAttention(bucket_size=4, n_hashes=rounds, attend_across_buckets=False)
    query, value = draw(6, 2, 2, HEADS, 16, DIM).unbind()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        expected = theirs(query.flatten(0, 1), value.flatten(0, 1))[0].unflatten(0, (2, HEADS))
        torch.manual_seed(0)
        rotations = torch.randn(1, DIM, rounds, 2, dtype=torch.float64)[0]
    core.load_state_dict({"rotations": rotations.transpose(0, 1)})
    torch.testing.assert_close(core(*all_seen(query, query, value)), expected, atol=1e-9, rtol=0)


def test_routing_equals_routing_transformer():
    """With normalised queries and keys, which it leaves to its caller.

    It averages over clusters with a slightly too large denominator, hence the tolerance. Its causal form takes the
    nearest frames of the whole recording, later ones included, and is not comparable.
    """
    routing = peer("routing_transformer.routing_transformer", "routing-transformer")
    core = build(cores.RoutingCore(clusters=3, window_frames=4))
    theirs = routing.KmeansAttention(3, 4, HEADS, DIM).double().eval()
    theirs.kmeans.means.copy_(core.state_dict()["clusters.centroids"])
    theirs.kmeans.initted.fill_(True)
    query, key, value = draw(7, 3, 2, HEADS, 11, DIM).unbind()
    normal = [nn.functional.layer_norm(x, (DIM,)) for x in (query, key)]
    expected, _ = theirs(*normal, value)
    torch.testing.assert_close(core(*all_seen(query, key, value)), expected, atol=1e-4, rtol=1e-4)


def test_the_sorting_equals_sinkhorn_transformer():
    theirs = peer("sinkhorn_transformer.sinkhorn_transformer", "sinkhorn-transformer")
    logits = draw(8, 3, 5, 5)
    order = sinkhorn(logits, torch.ones(1, 5, 5, dtype=torch.bool), 7)
    torch.testing.assert_close(order, theirs.sinkhorn_sorting_operator(logits, 7), atol=1e-9, rtol=0)


def order_of(query: Tensor, key: Tensor, block: int, config: cores.SinkhornCore) -> Tensor:
    """Sort blocks as our core does, by the means of queries and keys."""
    means = [x.unflatten(2, (-1, block)).mean(dim=3) for x in (query, key)]
    if config.causal:
        counts = torch.arange(1, query.shape[2] + 1)[:, None]
        means[0] = (query.cumsum(dim=2) / counts)[:, :, ::block]
    logits = means[0] @ means[1].transpose(-1, -2) * DIM**-0.5 / config.temperature
    pairs = torch.ones(logits.shape[-2:], dtype=torch.bool)
    return sinkhorn(logits, pairs.tril(-1) if config.causal else pairs, config.iterations, causal=config.causal)


@pytest.mark.parametrize("cut", [0, 2])
def test_what_follows_the_sorting_equals_sinkhorn_transformer(cut: int):
    """With our sorting, as its own has noise and a rectified score.

    Without a cut it uses sorted keys for sorted values by mistake: values are the keys here. With one it leaves out the
    own block, as in the paper, where blocks of queries and keys differ in length.
    """
    theirs = peer("sinkhorn_transformer.sinkhorn_transformer", "sinkhorn-transformer")
    config = cores.SinkhornCore(block_frames=3, cut_blocks=cut)
    query, key, value = draw(9, 3, 2, HEADS, 12, DIM).unbind()
    value = value if cut else key
    asking = 4 if cut else 3
    attention = theirs.SinkhornAttention(asking, HEADS * DIM, DIM, HEADS, 12, n_sortcut=cut, kv_bucket_size=3)
    attention.sort_net.forward = lambda *_, **__: order_of(query, key, 3, config).flatten(0, 1)
    out, expected = build(config)(*all_seen(query, key, value)), attention(query, key, value)
    torch.testing.assert_close(out, expected, atol=1e-9, rtol=0)


def test_causal_sinkhorn_equals_sinkhorn_transformer():
    """After our sorting, in the heads that it does not shift, after the first block (it has a learned frame)."""
    theirs = peer("sinkhorn_transformer.sinkhorn_transformer", "sinkhorn-transformer")
    config = cores.SinkhornCore(block_frames=3, causal=True)
    query, key, value = draw(10, 3, 2, HEADS, 12, DIM).unbind()
    attention = theirs.SinkhornCausalAttention(3, HEADS * DIM, DIM, HEADS, 12, n_top_buckets=1).double()
    order = nn.functional.pad(order_of(query, key, 3, config), (1, 0)).flatten(0, 1)
    attention.sort_net.forward = lambda *_, **__: order
    out, expected = build(config)(*all_seen(query, key, value)), attention(query, key, value)
    torch.testing.assert_close(out[:, : HEADS // 2, 3:], expected[:, : HEADS // 2, 3:], atol=1e-9, rtol=0)

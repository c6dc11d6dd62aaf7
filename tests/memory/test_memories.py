"""The laws of memories, for every registered one, in the layer that reads them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import get_args, get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import Position
from sortformer.config.cores import Core, FavorCore, FullCore, LinearCore, ReformerCore
from sortformer.config.mechanisms import MEMORIES
from sortformer.config.memories import CompressiveMemory, Memory, NearestMemory, NoMemory, TransformerXLMemory
from sortformer.memory.compression import Convolution
from sortformer.memory.key_values import KeyValues
from sortformer.memory.nearest import Nearest
from tests.draws import draw
from tests.masks import unpadded
from tests.memory.cases import CHUNK, DIM, FRAMES, HEADS, build, compressive, streamed
from tests.oracles.memory_loops import ListMemory, attention_over, compress, nearest
from tests.position.cases import CASES

LAST = FRAMES // CHUNK * CHUNK  # where the last chunk begins
COMPRESSIONS = get_args(get_type_hints(CompressiveMemory)["compression"])


WITH_FRAMES: list[Memory] = [
    TransformerXLMemory(frames=5, chunk_frames=CHUNK),
    *(compressive(kind) for kind in COMPRESSIONS),
]
KNN = NearestMemory(frames=7, neighbours=2, chunk_frames=CHUNK)


def label(memory: Memory) -> str:
    return memory.kind + (f"-{memory.compression}" if isinstance(memory, CompressiveMemory) else "")


def projected(layer: MultiHeadAttention, frames: np.ndarray) -> list[np.ndarray]:
    """Query, key and value (T, H, d) of frames (T, D)."""
    weights = {name: value.numpy() for name, value in layer.state_dict().items()}
    return [
        (frames @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]).reshape(len(frames), HEADS, -1)
        for name in ("query", "key", "value")
    ]


def merged(layer: MultiHeadAttention, mixed: np.ndarray) -> np.ndarray:
    weights = {name: value.numpy() for name, value in layer.state_dict().items()}
    return mixed.reshape(len(mixed), -1) @ weights["out.weight"].T + weights["out.bias"]


def by_lists(
    layer: MultiHeadAttention,
    memory: Memory,
    x: np.ndarray,
    ends: Sequence[int] = range(CHUNK, FRAMES + CHUNK, CHUNK),
    position: Position = "none",
) -> np.ndarray:
    """Process a recording (T, D) in chunks that end before these frames, with every past frame projected anew."""
    if isinstance(memory, TransformerXLMemory):
        past, squeeze = ListMemory(memory.frames), None
    else:
        assert isinstance(memory, CompressiveMemory)
        past = ListMemory(memory.frames, memory.compressed_frames, memory.ratio)
        prefix = "memory.compression."
        weights = {
            name.removeprefix(prefix): value.numpy()
            for name, value in layer.state_dict().items()
            if name.startswith(prefix)
        }
        squeeze = compress(memory.compression, memory.ratio, weights)
    case, own = CASES[position], {name: value.numpy() for name, value in layer.state_dict().items()}
    mixed = np.zeros((len(x), HEADS, DIM // HEADS))
    for start, end in pairwise((0, *ends)):
        chunk = [(start + n, frame) for n, frame in enumerate(x[start:end])]
        seen = [*past.frames, *chunk]
        at = [place for place, _ in seen]
        plain = projected(layer, np.array([frame for _, frame in seen]))
        query, key, value = projected(layer, np.array([case.embed(own, frame, place) for place, frame in seen]))
        compressed = len(past.compressed)
        for n, h in np.ndindex(len(chunk), HEADS):
            i = len(seen) - len(chunk) + n

            def score(query: np.ndarray, key: np.ndarray, j: int, i: int = i, h: int = h, at: list = at) -> float:
                return case.score(own, h, query, key, at[i], at[j])

            mixed[start + n, h], _ = attention_over(query[i, h], list(key[:, h]), list(value[:, h]), score)
            _, by_content = attention_over(plain[0][i, h], list(plain[1][:, h]), list(plain[2][:, h]))
            for m in range(len(past.recent)):
                past.usage[m] += by_content[compressed + m]
        past.push(chunk, squeeze)
    return merged(layer, mixed)


def test_every_memory_that_is_registered_is_tested():
    assert {memory.kind for memory in (NoMemory(), KNN, *WITH_FRAMES)} == set(MEMORIES)


@pytest.mark.parametrize("memory", WITH_FRAMES, ids=label)
@pytest.mark.parametrize("position", ["none", "rope", "alibi", "xl", "distance_aware", "sinusoidal"])
def test_it_equals_lists_of_frames(memory: Memory, position: Position):
    layer, x = build(memory, position=position), draw(1, FRAMES, DIM)
    with torch.no_grad():
        out = layer(*unpadded(x[None])).out[0]
    np.testing.assert_allclose(out.numpy(), by_lists(layer, memory, x.numpy(), position=position), atol=1e-6)


@pytest.mark.parametrize("memory", WITH_FRAMES, ids=label)
@given(cuts=st.sets(st.integers(1, FRAMES - 1), max_size=6))
@settings(max_examples=5, deadline=None)
def test_in_any_cut_it_equals_lists_of_frames_that_were_cut_there(memory: Memory, cuts: set[int]):
    layer, x = build(memory), draw(1, FRAMES, DIM)
    ends = [*sorted(cuts), FRAMES]
    outs, state = [], layer.init_state(x[None])
    with torch.no_grad():
        for start, end in pairwise((0, *ends)):
            step = layer(*unpadded(x[None, start:end]), state)
            state = step.state
            outs.append(step.out[0])
    np.testing.assert_allclose(torch.cat(outs).numpy(), by_lists(layer, memory, x.numpy(), ends), atol=1e-9)


def test_the_nearest_keys_equal_a_search_through_a_list():
    layer, x = build(KNN), draw(2, FRAMES, DIM).numpy()
    query, key, value = projected(layer, x)
    gate = 1 / (1 + np.exp(-layer.state_dict()["memory.gate"].numpy()))
    sharpness = np.exp(layer.state_dict()["memory.log_sharpness"].numpy())
    mixed = np.zeros(query.shape)
    for i, h in np.ndindex(FRAMES, HEADS):
        start = i // CHUNK * CHUNK
        own = slice(start, min(start + CHUNK, FRAMES))
        past = slice(max(0, start - KNN.frames), start)
        mixed[i, h], _ = attention_over(query[i, h], list(key[own, h]), list(value[own, h]))
        if start:
            read = nearest(query[i, h], list(key[past, h]), list(value[past, h]), KNN.neighbours, sharpness[h])
            mixed[i, h] = (1 - gate[h]) * mixed[i, h] + gate[h] * read
    with torch.no_grad():
        np.testing.assert_allclose(
            layer(*unpadded(torch.from_numpy(x)[None])).out[0].numpy(), merged(layer, mixed), atol=1e-9
        )


def test_who_has_no_past_is_left_as_he_is_by_one_who_has():
    memory, generator = Nearest(HEADS, length=7, neighbours=2), torch.Generator().manual_seed(4)
    key, value, query, mixed = torch.randn(4, 2, HEADS, 5, 3, generator=generator)
    valid = torch.tensor([[True] * 5, [False] * 5])
    found = memory.mix(mixed, query, KeyValues(key, value, valid))
    assert not torch.allclose(found[0], mixed[0])
    torch.testing.assert_close(found[1], mixed[1], atol=0, rtol=0)


def test_the_keys_of_a_core_that_shares_queries_are_its_queries():
    """Its key projection is never trained, so a search by that would find frames at random."""
    layer, x = build(KNN, ReformerCore(buckets=1, rounds=1, chunk_frames=99)), draw(2, FRAMES, DIM)
    query = torch.from_numpy(projected(layer, x.numpy())[0]).transpose(0, 1)
    with torch.no_grad():
        stored = layer(*unpadded(x[None])).state.memory.key[0]
    torch.testing.assert_close(stored, normalize(query[:, -KNN.frames :], dim=-1))


@pytest.mark.parametrize("memory", [*WITH_FRAMES, KNN], ids=label)
@pytest.mark.parametrize("position", ["none", "rope", "sinusoidal"])
def test_neither_padding_nor_other_rows_touch_a_recording(memory: Memory, position: str):
    layer, x = build(memory, position=position), draw(3, 2, FRAMES, DIM)
    lengths = (FRAMES, 9)
    valid = torch.arange(FRAMES) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        together = layer(x.masked_fill(~valid[..., None], torch.nan), valid).out
        for row, length in enumerate(lengths):
            alone = layer(*unpadded(x[row : row + 1, :length])).out[0]
            torch.testing.assert_close(together[row, :length], alone, atol=1e-6, rtol=0)


@pytest.mark.parametrize("memory", [*WITH_FRAMES, KNN], ids=label)
def test_gradients_are_those_of_finite_differences(memory: Memory):
    layer, x = build(memory), draw(19, 1, FRAMES, DIM)
    past, chunk = x[:, :LAST], x[:, LAST:].clone().requires_grad_()
    learned = {name: value for name, value in layer.named_parameters() if name.startswith("memory.")}
    given = (chunk, *learned.values())

    def out(chunk: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        whole = unpadded(torch.cat((past, chunk), dim=1))
        return torch.func.functional_call(layer, dict(zip(learned, values, strict=True)), whole).out

    assert torch.autograd.gradcheck(out, given, fast_mode=True, atol=1e-6)
    for grad in torch.autograd.grad(out(*given).square().sum(), given):
        assert grad.abs().max() > 1e-6


@pytest.mark.parametrize("memory", [*WITH_FRAMES, KNN], ids=label)
def test_what_is_remembered_gets_no_gradient(memory: Memory):
    layer, x = build(memory), draw(20, 1, FRAMES, DIM).requires_grad_()
    assert not torch.autograd.grad(layer(*unpadded(x)).out[:, LAST:].square().sum(), x)[0][:, :LAST].any()


@pytest.mark.parametrize("memory", [*WITH_FRAMES, KNN], ids=label)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_stays_finite_and_so_do_its_gradients(memory: Memory, dtype: torch.dtype):
    layer, x = build(memory).to(dtype), draw(18, 3, FRAMES, DIM).to(dtype).requires_grad_()
    out = layer(x, torch.arange(FRAMES) < torch.tensor([[FRAMES], [9], [0]])).out
    assert out.dtype is dtype
    out.square().sum().backward()
    for tensor in (out, x.grad, *(parameter.grad for parameter in layer.parameters())):
        assert tensor is not None
        assert torch.isfinite(tensor).all()


@pytest.mark.parametrize("memory", [*WITH_FRAMES, KNN], ids=label)
def test_what_comes_later_changes_no_chunk(memory: Memory):
    layer, x = build(memory), draw(4, 2, 1, FRAMES, DIM)
    with torch.no_grad():
        before = layer(*unpadded(x[0])).out
        changed = layer(*unpadded(torch.cat((x[0, :, : 2 * CHUNK], 9 * x[1, :, 2 * CHUNK :]), dim=1))).out
    torch.testing.assert_close(changed[:, : 2 * CHUNK], before[:, : 2 * CHUNK], atol=1e-9, rtol=0)
    assert not torch.allclose(changed[:, 2 * CHUNK :], before[:, 2 * CHUNK :])


@pytest.mark.parametrize("memory", [*WITH_FRAMES, KNN], ids=label)
def test_a_recording_at_once_is_its_chunks_one_by_one(memory: Memory):
    layer, x = build(memory, position="rope"), draw(5, 1, FRAMES, DIM)
    with torch.no_grad():
        torch.testing.assert_close(
            torch.cat([step.out for step in streamed(layer, x)], dim=1), layer(*unpadded(x)).out, atol=1e-9, rtol=0
        )


def test_an_untrained_convolution_is_the_mean_of_a_group():
    frames = draw(0, 2, 6, DIM).float()
    found = Convolution(DIM, 3)(frames, torch.ones(2, 6, dtype=torch.bool), torch.zeros(2, 6))
    torch.testing.assert_close(found, torch.stack([frames[:, :3].mean(dim=1), frames[:, 3:].mean(dim=1)], dim=1))


@pytest.mark.parametrize("compression", ["max", "mean", "conv"])
def test_groups_do_not_depend_on_where_the_stream_is_cut(compression: str):
    """With the same frames so far, groups are the same for all chunks."""
    layer, x = build(compressive(compression)), draw(6, 1, 12, DIM)
    recalled = []
    for sizes in ((12,), (1,) * 12, (5, 3, 4)):
        with torch.no_grad():
            recalled.append(layer.memory.recall(streamed(layer, x, sizes)[-1].state.memory))
    for other in recalled[1:]:
        torch.testing.assert_close(other.frames, recalled[0].frames, atol=1e-12, rtol=0)
        torch.testing.assert_close(other.at, recalled[0].at, atol=0, rtol=0)


@pytest.mark.parametrize(
    "memory",
    [
        TransformerXLMemory(frames=0, chunk_frames=CHUNK),
        CompressiveMemory(frames=0, compressed_frames=0, compression="mean", chunk_frames=CHUNK),
        NearestMemory(frames=0, chunk_frames=CHUNK),
    ],
    ids=label,
)
@pytest.mark.parametrize("core", [FullCore(), FavorCore(features=5)], ids=lambda core: core.kind)
def test_an_empty_memory_is_none(memory: Memory, core: Core):
    """Then the Compressive Performer is the Performer, chunk by chunk."""
    layer, plain, x = build(memory, core), build(NoMemory(), core), draw(7, 1, FRAMES, DIM)
    with torch.no_grad():
        alone = torch.cat([plain(*unpadded(chunk)).out for chunk in x.split(CHUNK, dim=1)], dim=1)
        torch.testing.assert_close(layer(*unpadded(x)).out, alone, atol=1e-12, rtol=0)


@pytest.mark.parametrize("compression", ["mean", "max", "conv", "most_used"])
def test_a_compression_by_one_that_changes_nothing_is_a_longer_queue(compression: str):
    memory = CompressiveMemory(frames=3, compressed_frames=4, ratio=1, compression=compression, chunk_frames=CHUNK)
    layer, x = build(memory, position="rope"), draw(8, 1, FRAMES, DIM)
    with torch.no_grad():
        for parameter in layer.memory.parameters():
            parameter.copy_(torch.eye(DIM)[..., None] if parameter.ndim > 1 else torch.zeros(DIM))
    longer = build(TransformerXLMemory(frames=7, chunk_frames=CHUNK), position="rope")
    longer.load_state_dict(layer.state_dict(), strict=False)  # the longer memory has no compression
    with torch.no_grad():
        torch.testing.assert_close(layer(*unpadded(x)).out, longer(*unpadded(x)).out, atol=1e-9, rtol=0)


def test_without_compressed_frames_it_is_transformer_xl():
    memory = CompressiveMemory(frames=5, compressed_frames=0, ratio=4, compression="mean", chunk_frames=CHUNK)
    xl, given = build(TransformerXLMemory(frames=5, chunk_frames=CHUNK)), unpadded(draw(9, 1, FRAMES, DIM))
    with torch.no_grad():
        torch.testing.assert_close(build(memory)(*given).out, xl(*given).out, atol=1e-12, rtol=0)


def test_with_as_many_neighbours_as_frames_a_query_reads_all_of_them():
    """A softmax over the directions of all keys: nothing is left out, and missing neighbours are not requested."""
    layer, x = build(NearestMemory(frames=99, neighbours=99, chunk_frames=CHUNK)), draw(10, 1, FRAMES, DIM)
    query, key, value = (layer._heads(part, x) for part in (layer.query, layer.key, layer.value))
    near = torch.nn.functional.normalize(query, dim=-1) @ torch.nn.functional.normalize(key, dim=-1).transpose(-1, -2)
    gate, sharpness = (layer.state_dict()[f"memory.{name}"] for name in ("gate", "log_sharpness"))
    read = (sharpness.exp()[:, None, None] * near[:, :, LAST:, :LAST]).softmax(dim=-1) @ value[:, :, :LAST]
    own = torch.nn.functional.scaled_dot_product_attention(*(part[:, :, LAST:] for part in (query, key, value)))
    expected = layer._merged(own + gate.sigmoid()[:, None, None] * (read - own))
    with torch.no_grad():
        torch.testing.assert_close(layer(*unpadded(x)).out[:, LAST:], expected, atol=1e-9, rtol=0)


def test_the_compressive_performer_comes_closer_to_the_compressive_transformer_with_more_features():
    memory, x = compressive("conv"), 0.5 * draw(11, 1, FRAMES, DIM)
    plain, errors = build(memory), []
    with torch.no_grad():
        for parameter in (*plain.query.parameters(), *plain.key.parameters()):
            parameter.mul_(0.4)  # longer queries and keys would need more features
    for features in (8, 128, 2048):
        layer = build(memory, FavorCore(features=features))
        layer.load_state_dict(plain.state_dict(), strict=False)  # the plain layer has no random directions
        with torch.no_grad():
            errors.append((layer(*unpadded(x)).out - plain(*unpadded(x)).out).norm())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_a_shut_gate_is_no_memory():
    layer, x = build(KNN), draw(10, 1, FRAMES, DIM)
    with torch.no_grad():
        layer.memory.gate.fill_(-200.0)  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
        alone = torch.cat([build(NoMemory())(*unpadded(chunk)).out for chunk in x.split(CHUNK, dim=1)], dim=1)
        torch.testing.assert_close(layer(*unpadded(x)).out, alone, atol=1e-12, rtol=0)


def test_the_compressive_performer_is_the_performer_over_what_is_remembered():
    """Its memory is that of the softmax layer with the same weights, and its core is invariant to order."""
    memory = compressive("conv")
    layer, plain = build(memory, FavorCore(features=5)), build(memory)
    x, state, other = draw(11, 1, FRAMES, DIM), None, None
    state, other = layer.init_state(x), plain.init_state(x)
    plain.load_state_dict({key: value for key, value in layer.state_dict().items() if not key.startswith("core.")})
    with torch.no_grad():
        for chunk in x.split(CHUNK, dim=1):
            recall = layer.memory.recall(state.memory)
            everything = torch.cat((recall.frames, chunk), dim=1)
            alone = build(NoMemory(), FavorCore(features=5))
            alone.load_state_dict(
                {key: value for key, value in layer.state_dict().items() if not key.startswith("memory.")}
            )
            step = layer(*unpadded(chunk), state)
            torch.testing.assert_close(
                step.out, alone(*unpadded(everything)).out[:, recall.frames.shape[1] :], atol=1e-9, rtol=0
            )
            state, other = step.state, plain(*unpadded(chunk), other).state
            theirs = plain.memory.recall(other.memory)
            torch.testing.assert_close(layer.memory.recall(state.memory).frames, theirs.frames, atol=0, rtol=0)


@pytest.mark.parametrize(
    ("core", "position"),
    [
        (FavorCore(features=6, causal=True), "none"),
        (FavorCore(features=6, causal=True), "rope"),
        (LinearCore(causal=True), "none"),
    ],
)
def test_a_core_with_a_state_streams_without_a_memory(core: Core, position: Position):
    layer, x = build(NoMemory(), core, position), draw(16, 1, FRAMES, DIM)
    with torch.no_grad():
        outs = [step.out for step in streamed(layer, x, (1, 5, 6, 2))]
        torch.testing.assert_close(torch.cat(outs, dim=1), layer(*unpadded(x)).out, atol=1e-6, rtol=0)


def test_what_carries_nothing_refuses_to_stream():
    with pytest.raises(ValueError, match="no memory, and its core no state"):
        build(NoMemory()).init_state(draw(0, 1, 2, DIM))

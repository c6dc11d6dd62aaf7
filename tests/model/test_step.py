"""Chunk by chunk: with the layers' state, arrivals included, chunks equal the whole recording."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sortformer.errors import ConfigError
from sortformer.model import ModelState, Sortformer
from sortformer.model.arrival import Arrivals, arrival_frames
from sortformer.streaming.rows import row, shapes, side_by_side
from tests.small_models import small_config, small_model
from tests.streaming.tiny import MEMORY_CHUNK, REMEMBERING, remembering_model

MODELS = {kind: remembering_model(kind) for kind in REMEMBERING}
FRAMES, DIM = 33, 16
few = settings(max_examples=5, deadline=None)
kinds = pytest.mark.parametrize("kind", REMEMBERING)


def frames(seed: int, rows: int = 1, count: int = FRAMES) -> Tensor:
    return 2 * torch.randn(rows, count, DIM, generator=torch.Generator().manual_seed(seed))


def in_chunks(model: Sortformer, emb: Tensor, ends: list[int], state: ModelState | None = None):
    """Return the concatenated logits and estimates of chunks that end before these frames, and the last state."""
    state = model.start(len(emb)) if state is None else state
    found = []
    with torch.no_grad():
        for start, end in pairwise((0, *ends)):
            output, state = model.step(emb[:, start:end], state)
            found.append((output.logits, *output.estimates))
    return [torch.cat(parts, dim=1) for parts in zip(*found, strict=True)], state


def whole(model: Sortformer, emb: Tensor) -> list[Tensor]:
    with torch.no_grad():
        output = model.forward_frames(emb, torch.ones(emb.shape[:2], dtype=torch.bool))
    return [output.logits, *output.estimates]


@kinds
@given(seed=st.integers(0, 999), count=st.integers(1, FRAMES))
@few
def test_the_chunks_of_its_memories_make_the_whole_recording(kind, seed, count):
    emb = frames(seed, count=count)
    chunks, _ = in_chunks(MODELS[kind], emb, [*range(MEMORY_CHUNK, count, MEMORY_CHUNK), count])
    torch.testing.assert_close(chunks, whole(MODELS[kind], emb), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["sums", "window", "combiner", "sparse", "long"])
@given(seed=st.integers(0, 999), cuts=st.sets(st.integers(1, FRAMES - 1), max_size=8))
@few
def test_layers_with_a_state_of_their_own_or_an_endless_memory_give_the_same_in_any_cut(kind, seed, cuts):
    emb = frames(seed)
    chunks, _ = in_chunks(MODELS[kind], emb, [*sorted(cuts), FRAMES])
    torch.testing.assert_close(chunks, whole(MODELS[kind], emb), atol=1e-4, rtol=1e-4)


@kinds
@given(seed=st.integers(0, 999), cut=st.integers(1, FRAMES - 1))
@few
def test_a_chunk_does_not_know_what_comes_nor_what_a_copy_of_its_state_went_on_to(kind, seed, cut):
    emb, other = frames(seed), frames(seed + 1)
    _, state = in_chunks(MODELS[kind], emb[:, :cut], [cut])
    first, _ = in_chunks(MODELS[kind], emb[:, cut:], [FRAMES - cut], state)
    in_chunks(MODELS[kind], other, [FRAMES], state)
    again, _ = in_chunks(MODELS[kind], emb[:, cut:], [FRAMES - cut], state)
    torch.testing.assert_close(again, first, atol=0, rtol=0)


@kinds
@given(seed=st.integers(0, 999))
@few
def test_rows_at_different_places_of_their_streams_do_not_know_each_other(kind, seed):
    model, emb, chunk = MODELS[kind], frames(seed, 2, 60), MEMORY_CHUNK
    early = in_chunks(model, emb[:1, :40], list(range(chunk, 41, chunk)))[1]
    late = in_chunks(model, emb[1:, :60], list(range(chunk, 61, chunk)))[1]
    if kind not in ("window", "combiner", "sparse", "long"):  # the states of these grow with the position
        assert shapes(early) == shapes(late)
    else:
        late = in_chunks(model, emb[1:, :40], list(range(chunk, 41, chunk)))[1]
    ahead = frames(seed + 1, 2, chunk)
    both, after = in_chunks(model, ahead, [chunk], side_by_side([early, late]))
    for index, state in enumerate((early, late)):
        alone, own = in_chunks(model, ahead[index : index + 1], [chunk], state)
        torch.testing.assert_close([part[index : index + 1] for part in both], alone, atol=1e-4, rtol=1e-4)
        assert shapes(row(after, index)) == shapes(own)


def test_arrivals_are_carried():
    """A class keeps the rank of its first frame: otherwise later chunks would be encoded differently."""
    model, emb = MODELS["sums"], frames(3)
    _, state = in_chunks(model, emb[:, :20], [20])
    estimates = whole(model, emb[:, :20])[1:]
    for arrivals, estimate in zip(state.head.arrivals, estimates, strict=True):
        first = arrival_frames(estimate.sigmoid())
        assert arrivals is not None
        assert arrivals.clock.tolist() == [20]
        assert torch.equal(arrivals.frames.clamp(max=20), first)
    forgotten = ModelState(
        state.encoder, type(state.head)(state.head.blocks, tuple(Arrivals.none(1, 3) for _ in estimates))
    )
    known, _ = in_chunks(model, emb[:, 20:], [13], state)
    other, _ = in_chunks(model, emb[:, 20:], [13], forgotten)
    assert not torch.allclose(known[0], other[0], atol=1e-2)


@given(seed=st.integers(0, 999), cuts=st.sets(st.integers(1, 29), max_size=5))
@settings(max_examples=30, deadline=None)
def test_arrivals_of_chunks_are_those_of_the_whole(seed, cuts):
    probs = torch.rand(2, 30, 4, generator=torch.Generator().manual_seed(seed)) * torch.tensor([1.0, 0.52, 0.51, 0.5])
    arrivals = Arrivals.none(2, 4)
    for start, end in pairwise((0, *sorted(cuts), 30)):
        arrivals = arrivals.after(probs[:, start:end])
    assert arrivals.clock.tolist() == [30, 30]
    assert torch.equal(arrivals.frames.clamp(max=30), arrival_frames(probs))


def test_a_model_whose_layers_carry_nothing_does_not_start():
    with pytest.raises(ConfigError, match="layer 1 of the encoder has no state"):
        small_model(small_config()).start()


def test_losses_of_layers_add_up_by_name():
    model = small_model(REMEMBERING["compressive"]).train()
    emb = frames(0, 2)
    output = model.forward_frames(emb, torch.ones(2, FRAMES, dtype=torch.bool))
    assert set(output.losses) == {"memory_attention"}  # of the encoder; the head's compressions have no weights
    output.losses["memory_attention"].backward()
    touched = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert touched == {f"encoder.blocks.0.attention.memory.compression.conv.{part}" for part in ("weight", "bias")}

"""The speaker cache: equal to NeMo's recorded steps, and to simple loops."""

import ast
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer.config.clustering import ClusteringConfig
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.streaming.frames import Frames
from sortformer.streaming.protocol import Chunk
from sortformer.streaming.rows import row as one_row
from sortformer.streaming.speaker_cache import add_silence, compress, scores
from sortformer.streaming.state import StreamState, start
from sortformer.streaming.step import shown, step, update
from tests.oracles.speaker_cache_loops import SILENCE, compressed
from tests.small_models import small_config, small_model

GOLDEN = Path(__file__).resolve().parents[1] / "golden/speaker_cache"
SHARED = Path(__file__).resolve().parents[2] / "../shared/data/golden"


@pytest.mark.parametrize("name", ["tiny", "train", "high_10", "vhigh_30"])
def test_steps_are_those_of_nemo(name):
    _replay(GOLDEN / f"{name}.npz")


@pytest.mark.data
@pytest.mark.parametrize("name", ["tiny", "train", "low_1.04", "high_10", "vhigh_30"])
def test_whole_recordings_of_steps_are_those_of_nemo(name):
    path = SHARED / f"aosc_{name}_sync.npz"
    if not path.exists():
        pytest.skip(f"../shared/data/golden/{path.name} is absent")
    _replay(path)


def updated(config: StreamConfig, state: StreamState, chunk: Chunk, probs: torch.Tensor, **how: int) -> StreamState:
    """Return the state after a chunk, given the probabilities of [cache | FIFO | chunk with its contexts]."""
    emb, count = shown(state, chunk)
    return update(config, state, chunk, Frames(emb, probs, count), **how)


def _replay(path):
    with np.load(path) as recorded:
        fields = ast.literal_eval(str(recorded["cfg"]))
        config = StreamConfig(
            chunk_frames=fields["chunk_len"],
            left_context_frames=fields["chunk_left_context"],
            right_context_frames=fields["chunk_right_context"],
            fifo_frames=fields["fifo_len"],
            update_period_frames=fields["spkcache_update_period"],
            speaker_cache=SpeakerCacheConfig(frames=fields["spkcache_len"]),
        )
        state, compressions = start(config, dim=16, num_slots=4), 0
        for index in range(int(recorded["n_chunks"])):
            emb, probs = torch.from_numpy(recorded[f"emb{index}"]), torch.from_numpy(recorded[f"preds{index}"])
            left, right = recorded[f"lcrc{index}"].tolist()
            chunk = Chunk(emb, *(torch.tensor([count]) for count in (left, emb.shape[1] - left - right, right)))
            first = int(state.cache.length + state.fifo.length) + left
            assert torch.equal(
                probs[:, first : first + int(chunk.length)], torch.from_numpy(recorded[f"chunkpreds{index}"])
            )
            state = updated(config, state, chunk, probs)
            _equal(state.cache.emb, state.cache.length, recorded[f"spkcache{index}"])
            _equal(state.fifo.emb, state.fifo.length, recorded[f"fifo{index}"])
            if recorded[f"spkpreds{index}"].size:
                compressions += 1
                assert state.compressed.item()
                _equal(state.cache.probs, state.cache.length, recorded[f"spkpreds{index}"])
            np.testing.assert_allclose(state.silence_mean.numpy(), recorded[f"sil{index}"], atol=1e-6)
            assert state.silence_count.tolist() == recorded[f"nsil{index}"].tolist()
        assert compressions, "these steps never fill the cache"


def _equal(ragged, length, recorded):
    assert int(length) == recorded.size // ragged.shape[2]
    np.testing.assert_array_equal(ragged[0, : int(length)].numpy(), recorded.reshape(-1, ragged.shape[2]))
    assert not ragged[0, int(length) :].any()


@given(
    seed=st.integers(0, 2**32 - 1),
    extra=st.integers(1, 40),
    slots=st.integers(1, 5),
    frames=st.integers(20, 40),
    silence_frames=st.integers(0, 3),
    floor=st.sampled_from([0.25, 0.1, 0.4]),
    newcomer=st.sampled_from([0.05, 0.0, 1.0]),
    shares=st.lists(st.sampled_from([0.75, 0.0, 0.3, 1.5]), min_size=3, max_size=3),
)
@settings(max_examples=200)
def test_the_frames_kept_are_those_that_loops_choose(
    seed, extra, slots, frames, silence_frames, floor, newcomer, shares
):
    rng = np.random.default_rng(seed)
    # Some slots speak most of the time and some hardly ever, mostly in overlap: these live by their bonus.
    both = rng.beta(10 ** rng.uniform(-1.5, 0.5, slots), 0.5, (2, frames + extra, slots))
    emb = torch.arange(1.0, frames + extra + 1, dtype=torch.float64).expand(2, -1)[..., None]
    strong, weak, enough = shares
    config = SpeakerCacheConfig(
        frames, silence_frames, floor, newcomer, strong_share=strong, weak_share=weak, min_positive_share=enough
    )
    silence = torch.full((2, 1), -1.0, dtype=torch.float64)
    kept, kept_probs = compress(emb, torch.from_numpy(both), silence, config)
    rules = {"floor": floor, "newcomer": newcomer, "strong": strong, "weak": weak, "enough": enough}
    for row, probs in enumerate(both):
        places = compressed(probs.tolist(), frames, silence_frames, **rules)
        assert kept[row, :, 0].tolist() == [-1.0 if place is SILENCE else place + 1.0 for place in places]
        expected = [[0.0] * slots if place is SILENCE else probs[place].tolist() for place in places]
        assert kept_probs[row].tolist() == expected


def test_a_score_is_positive_where_a_slot_speaks_alone_more_likely_than_not():
    probs = torch.tensor([[[0.7, 0.2], [0.7, 0.4], [0.9, 0.9]]], dtype=torch.float64)
    joint = torch.tensor([0.7 * 0.8, 0.7 * 0.6, 0.75 * 0.25], dtype=torch.float64)
    found = scores(probs, 0.25)[0, :, 0]
    torch.testing.assert_close(found[:2], (joint[:2] / 0.5).log())
    assert (found > 0).tolist() == [True, False, False]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_silence_is_the_mean_of_all_silent_frames_of_a_row_so_far(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    mean, count, silent = torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64), ([], [])
    for both in lengths:
        emb, probs = (torch.rand(2, 6, 3, generator=generator) for _ in range(2))
        probs = probs / 6
        mean, count = add_silence(mean, count, emb, probs, torch.tensor(both), 0.2)
        for row, length in enumerate(both):
            silent[row].extend(emb[row, t] for t in range(length) if probs[row, t].sum() < 0.2)
    for row, own in enumerate(silent):
        assert count[row].item() == len(own)
        torch.testing.assert_close(mean[row], torch.stack([torch.zeros(3), *own]).sum(0) / max(1, len(own)))


def test_a_silence_that_was_learned_fills_the_cache():
    model = small_model(small_config({"learned_silence": True}))
    config, dim = StreamConfig(20, fifo_frames=0, speaker_cache=SpeakerCacheConfig(12, 1)), model.config.encoder.dim
    nothing, length = torch.tensor([0]), torch.tensor([20])
    emb = torch.rand(1, 20, dim, generator=torch.Generator().manual_seed(0))
    assert model.encoder.silence is not None
    with torch.no_grad():
        model.encoder.silence.fill_(7.0)
        state, _ = step(model, config, start(config, dim, 3), Chunk(emb, nothing, length, nothing))
    silent, heard = (state.cache.emb[0] == 7).all(dim=1), (state.cache.emb[0][:, None] == emb).all(dim=2).any(dim=1)
    assert silent.sum() >= 3  # one for each slot
    assert (silent ^ heard).all()


def test_a_row_that_sits_out_keeps_its_bits_while_the_cache_fills():
    config = StreamConfig(5, fifo_frames=4, update_period_frames=4, speaker_cache=SpeakerCacheConfig(30, 1))
    states, nothing = [start(config, dim=4, num_slots=3, rows=2)], torch.tensor([0, 0])
    for lengths in ([5, 5], [5, 5], [5, 0]):
        chunk = Chunk(torch.rand(2, 5, 4), nothing, torch.tensor(lengths), nothing)
        states.append(updated(config, states[-1], chunk, torch.rand(2, 20, 3)))
    before, after = states[-2:]
    assert before.cache.length[1] > 0
    torch.testing.assert_close(asdict(one_row(after, 1)), asdict(one_row(before, 1)), rtol=0, atol=0)


def test_slots_that_nobody_has_had_take_no_room_in_the_cache():
    cache = SpeakerCacheConfig(24, 1)
    by_slot = StreamConfig(40, speaker_cache=cache)
    by_voice = replace(by_slot, clustering=ClusteringConfig(0.4, max_speakers=6))
    rng = torch.Generator().manual_seed(0)
    emb, count, none = torch.rand(2, 40, 4, generator=rng), torch.tensor([40, 40]), torch.tensor([0, 0])
    probs = torch.rand(2, 40, 6, generator=rng) * torch.tensor([[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0]])[:, None]
    chunk = Chunk(emb, none, count, none)
    found = updated(by_voice, start(by_voice, 4, 2, 2), chunk, probs, slots=2)
    assert found.compressed.all()
    for row, used in enumerate((2, 4)):  # the slots that have been active
        alone = Chunk(emb[row, None], none[:1], count[:1], none[:1])
        expected = updated(by_slot, start(by_slot, 4, used), alone, probs[row, None, :, :used])
        assert torch.equal(found.cache.emb[row], expected.cache.emb[0])
        assert torch.equal(found.cache.probs[row, :, :used], expected.cache.probs[0])
        assert found.cache.probs[row, :, used - 1].any()
        assert not found.cache.probs[row, :, used:].any()


@pytest.mark.parametrize("upsampling", [1, 8])
def test_the_probabilities_are_of_the_chunk_and_what_is_remembered_of_its_80_ms(upsampling):
    model = small_model(small_config(head={"upsampling": upsampling, "estimate_layers": ()}))
    config = StreamConfig(3, 1, 2, fifo_frames=6, speaker_cache=SpeakerCacheConfig(9, 1))
    generator = torch.Generator().manual_seed(0)
    emb = torch.randn(1, 6, model.config.encoder.dim, generator=generator)
    with torch.no_grad():
        if model.head.upsampling is not None:  # initially it repeats the frames of 80 ms
            model.head.upsampling.conv.weight.normal_(generator=generator)
        whole = model.forward_frames(emb, torch.ones(1, 6, dtype=torch.bool)).probs
        chunk = Chunk(emb, *(torch.tensor([count]) for count in (2, 3, 1)))
        state, probs = step(model, config, start(config, emb.shape[2], 3), chunk)
    expected = whole[:, 2 * upsampling : 5 * upsampling]
    torch.testing.assert_close(probs, expected)
    torch.testing.assert_close(state.fifo.probs[0, :3], expected.reshape(3, upsampling, 3).mean(dim=1))

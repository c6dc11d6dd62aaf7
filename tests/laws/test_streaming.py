"""The laws of streaming, whatever remembers: cuts, snapshots, other rows and later audio change nothing."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer.annotation import Diarization
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.grid import SAMPLE_RATE
from sortformer.postprocess import turns
from sortformer.streaming import Chunk, Session, step, stream_probabilities
from sortformer.streaming.rows import row as one_row
from sortformer.streaming.state import start
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.strategies import spread
from tests.streaming.tiny import REMEMBERING, noise, normalized, remembering_model, tiny_model

pytestmark = [MAXIMUM_MAY_BE_REACHED, pytest.mark.filterwarnings("ignore:no speech found")]

MODEL = tiny_model()
models = st.sampled_from([MODEL, normalized("fixed"), normalized("fixed", (-9.0, -5.0))])
SLOTS, DIM = MODEL.config.head.num_slots, MODEL.config.encoder.dim
POSTPROCESS = PostprocessConfig(0.5, 0.4, pad_on_s=0.06, pad_off_s=0.02, min_on_s=0.1, min_off_s=0.2)

stream_configs = st.builds(
    StreamConfig,
    chunk_frames=st.integers(2, 9),
    right_context_frames=st.integers(0, 4),
    left_context_frames=st.integers(0, 2),
    margin_frames=st.integers(0, 1),
    fifo_frames=st.integers(0, 12),
    update_period_frames=st.integers(1, 12),
    speaker_cache=st.builds(
        SpeakerCacheConfig, frames=st.sampled_from([0, 9, 14, 20]), silence_frames=st.integers(0, 2)
    ),
    clustering=st.sampled_from([None, ClusteringConfig(0.2, max_speakers=5)]),
    voice_frames=st.sampled_from([0, 6, 1_024]),
)
by_layers = st.tuples(
    st.sampled_from([remembering_model(kind) for kind in REMEMBERING]), st.integers(1, 9).map(StreamConfig.by_memory)
)
streams = st.tuples(models, stream_configs) | by_layers
waves = st.builds(noise, samples=spread(0, 30_000), seed=st.integers(0, 99))
sounds = waves.filter(lambda wave: len(wave) >= 160)  # the model itself needs a frame
few = settings(max_examples=15, deadline=None)


def _run(session, pieces):
    updates = [session.push(piece) for piece in pieces]
    return [*updates, session.flush()]


def _without_confidence(diarization):
    return [dataclasses.replace(turn, confidence=None) for turn in diarization]


def _probs(updates):
    return np.concatenate([update.probs for update in updates])


@given(stream=streams, wave=waves, data=st.data())
@few
def test_any_cut_of_the_audio_gives_the_same_bits(stream, wave, data):
    model, config = stream
    cuts = sorted(data.draw(st.lists(spread(0, len(wave)), max_size=6)))
    cut = Session(model, config, POSTPROCESS)
    updates = _run(cut, np.split(wave, cuts))
    whole = Session(model, config, POSTPROCESS)
    np.testing.assert_array_equal(_probs(updates), _probs(_run(whole, [wave])))
    assert cut.finish() == whole.finish()
    assert len(_probs(updates)) == model.config.grid.output_frames(len(wave))


@given(stream=streams, wave=waves, data=st.data())
@few
def test_frames_and_turns_once_given_are_those_of_the_end(stream, wave, data):
    model, config = stream
    cuts = sorted(data.draw(st.lists(spread(0, len(wave)), max_size=6)))
    session = Session(model, config, POSTPROCESS)
    updates = _run(session, np.split(wave, cuts))
    firsts = np.cumsum([0] + [len(update.probs) for update in updates[:-1]])
    assert [update.first_frame for update in updates] == firsts.tolist()
    given_turns = tuple(turn for update in updates for turn in update.turns)
    assert updates[-1].tentative == ()
    assert Diarization(given_turns, session.duration_s) == session.finish()
    offline = turns(_probs(updates), POSTPROCESS, session.step_s, duration=session.duration_s)
    assert _without_confidence(session.finish()) == _without_confidence(offline)
    assert [turn.confidence for turn in session.finish()] == pytest.approx([turn.confidence for turn in offline])


@given(stream=streams, seed=st.integers(0, 99))
@few
def test_who_spoke_is_known_when_the_delay_of_turns_has_passed(stream, seed):
    session, final, known = Session(*stream, POSTPROCESS), (), []
    for block in noise(60_000, seed=seed).reshape(-1, 1_000):
        update = session.push(block)
        final += update.turns
        until_s = max(0.0, update.time_s - POSTPROCESS.turn_delay_s)
        known.append((until_s, Diarization(final + update.tentative, session.duration_s)))
    for until_s, so_far in known:
        result = session.finish().crop(0, until_s)
        assert _without_confidence(so_far.crop(0, until_s)) == _without_confidence(result)


@given(stream=streams, chunks=st.integers(0, 4), more=st.just(0) | spread(0, 9_000))
@few
def test_a_frame_is_final_when_its_latency_has_passed(stream, chunks, more):
    model, config = stream
    count = 96 + 1_280 * (chunks * config.chunk_frames + config.right_context_frames) + more  # 0: a chunk is just due
    session = Session(model, config)
    session.push(np.zeros(count, np.float32))
    heard = count - 0.006 * SAMPLE_RATE
    due = sum(frame * 1_280 + round(config.latency_s * SAMPLE_RATE) <= heard for frame in range(count // 1_280 + 1))
    assert session.num_frames >= due


@given(stream=streams, wave=waves, data=st.data())
@few
def test_a_turn_is_final_when_its_latency_and_its_delay_have_passed(stream, wave, data):
    model, config = stream
    cuts = sorted(data.draw(st.lists(spread(0, len(wave)), max_size=6)))
    session = Session(model, config, POSTPROCESS)
    for piece in (*np.split(wave, cuts), None):
        due_s = session.duration_s - 0.006 - config.latency_s - POSTPROCESS.turn_delay_s
        update = session.flush() if piece is None else session.push(piece)
        assert all(turn.end > due_s - 1e-9 for turn in update.turns)


@given(stream=streams, wave=waves, other=waves, cut=spread(0, 30_000))
@few
def test_what_is_final_does_not_know_what_comes(stream, wave, other, cut):
    model, config = stream
    session = Session(model, config)
    early = session.push(wave[:cut]).probs
    branched = Session(model, config)
    later = _probs(_run(branched, [np.concatenate([wave[:cut], other])]))
    np.testing.assert_array_equal(early, later[: len(early)])


@given(stream=streams, wave=waves, data=st.data())
@few
def test_a_restored_session_goes_on_as_the_other_would_have(stream, wave, data):
    model, config = stream
    cut = data.draw(spread(0, len(wave)))
    session = Session(model, config, POSTPROCESS, uri="meeting")
    session.push(wave[:cut])
    restored = Session.restore(copy.deepcopy(model), session.snapshot())
    np.testing.assert_array_equal(_probs(_run(session, [wave[cut:]])), _probs(_run(restored, [wave[cut:]])))
    assert restored.finish() == session.finish()


@given(wave=sounds, subsampling=st.sampled_from(["dw_striding", "stacking"]))
@few
def test_one_chunk_as_long_as_the_recording_is_offline(wave, subsampling):
    model = tiny_model(gain=1.0, subsampling=subsampling)
    config = StreamConfig(chunk_frames=max(1, model.config.grid.output_frames(len(wave))))
    with torch.no_grad():
        offline = model(torch.from_numpy(wave)[None]).probs[0].numpy()
    np.testing.assert_allclose(stream_probabilities(Session(model, config), [wave]), offline, atol=1e-5)


@given(wave=sounds, config=stream_configs)
@few
def test_subsampled_frames_do_not_depend_on_where_chunks_begin(wave, config):
    config = dataclasses.replace(config, margin_frames=1, fifo_frames=30, left_context_frames=0)
    session = Session(MODEL, config)
    session.push(wave)
    session.flush()
    with torch.no_grad():
        feats, lengths = MODEL.features(torch.from_numpy(wave)[None])
        whole, _ = MODEL.encoder.pre_encode(feats, lengths)
    memory = session._position.memory
    torch.testing.assert_close(memory.fifo.emb[:, : memory.fifo.length], whole, atol=1e-4, rtol=1e-4)


@given(seed=st.integers(0, 999), config=stream_configs, lengths=st.lists(st.integers(0, 24), min_size=2, max_size=3))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_rows_of_ragged_lengths_do_not_know_each_other(seed, config, lengths):
    streams = [torch.randn(count, DIM, generator=torch.Generator().manual_seed(seed + count)) for count in lengths]
    together = _drive(config, streams)
    for row, stream in enumerate(streams):
        alone = _drive(config, [stream])
        torch.testing.assert_close(together[1][row], alone[1][0], atol=1e-5, rtol=1e-5)
        ours, theirs = dataclasses.asdict(one_row(together[0], row)), dataclasses.asdict(alone[0])
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@given(seed=st.integers(0, 999), config=stream_configs)
@few
def test_a_step_does_not_write_to_the_state_that_it_is_given(seed, config):
    emb, none = torch.randn(1, 60, DIM, generator=torch.Generator().manual_seed(seed)), torch.tensor([0])
    state = start(config, DIM, SLOTS)
    for part in emb.split(config.chunk_frames, dim=1):
        before = copy.deepcopy(state)
        with torch.no_grad():
            after, _ = step(MODEL, config, state, Chunk(part, none, none + part.shape[1], none))
        _assert_same_row(before, state, 0)
        state = after


def _drive(config, streams):
    """Step batched streams of subsampled frames (T, D); rows that have ended are inactive."""
    state, found = start(config, DIM, SLOTS, rows=len(streams)), [[] for _ in streams]
    for first in range(0, max(map(len, streams)), config.chunk_frames):
        parts, counts = [], []
        for stream in streams:
            length = max(0, min(config.chunk_frames, len(stream) - first))
            left = min(config.left_context_frames, first) if length else 0
            right = max(0, min(config.right_context_frames, len(stream) - first - length))
            parts.append(stream[first - left : first + length + right] if length else stream[:0])
            counts.append((left, length, right))
        emb = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=torch.nan)
        before = state
        with torch.no_grad():
            state, probs = step(MODEL, config, state, Chunk(emb, *torch.tensor(counts).T))
        for row, (_, length, _) in enumerate(counts):
            found[row].append(probs[row, :length])
            assert not probs[row, length:].any()
            if not length:
                _assert_same_row(before, state, row)
    return state, [torch.cat([torch.zeros(0, config.slots(SLOTS)), *parts]) for parts in found]


def _assert_same_row(before, after, row):
    ours, theirs = (dataclasses.asdict(one_row(state, row)) for state in (after, before))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@pytest.mark.parametrize("limit", [1, 2])
def test_slots_past_the_limit_stay_silent(limit):
    config = StreamConfig(5, 1, fifo_frames=6, speaker_cache=SpeakerCacheConfig(12, 1), max_speakers=limit)
    session = Session(MODEL, config)
    probs = stream_probabilities(session, [noise(60_000)])
    assert not probs[:, limit:].any()
    assert (probs[:, :limit] > 0.5).any()
    kept = session._position.memory.cache.probs
    assert kept.any()
    assert not kept[..., limit:].any()  # nor do they occupy the cache

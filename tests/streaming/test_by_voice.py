"""Streams by voice: columns follow the voices, whatever the head's slots do, and the laws of streams hold."""

import itertools
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from sortformer.clustering import alone
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import StreamConfig
from sortformer.diarizer import Diarizer
from sortformer.ragged import end_to_end
from sortformer.streaming import Session, stream_probabilities
from sortformer.streaming.by_voice import by_known_voice, rows_by_voice, worth_keeping
from sortformer.streaming.forget import forget
from sortformer.streaming.protocol import Chunk
from sortformer.streaming.rows import row as one_row
from sortformer.streaming.state import StreamState, start
from sortformer.streaming.step import step
from tests.streaming.tiny import CONFIG as BY_SLOT
from tests.streaming.tiny import hearing_model, noise, remembering_model, tiny_model
from tests.test_clustering import DIM, conversation, slots_at_random

CLUSTERING = ClusteringConfig(0.4)
CONFIG = replace(BY_SLOT, clustering=CLUSTERING)
MODEL = tiny_model(gain=5.0)


def streamed(probs: np.ndarray, emb: np.ndarray, chunk: int, most: int, remembered: int = 150) -> np.ndarray:
    """Return the decisions chunk by chunk, each with the latest frames and their decisions."""
    found = np.zeros((0, probs.shape[1]), np.float32)
    for end in range(chunk, len(probs) + 1, chunk):
        first = max(0, end - chunk - remembered)
        new = by_known_voice(probs[first:end], emb[first:end], found[first:], CLUSTERING, most)
        found = np.concatenate([found, new[-chunk:]])
    return found


@given(seed=st.integers(0, 1000), voices=st.integers(1, 4), chunk=st.sampled_from([3, 12, 60]))
@settings(max_examples=25)
def test_a_voice_keeps_its_column_whatever_the_slots_say(seed, voices, chunk):
    who, emb = conversation(seed, voices, turns=12)
    probs = slots_at_random(seed, len(who), slots=4)
    found = streamed(probs, emb, chunk, most=4, remembered=len(who))
    mine = who[: len(found)]
    spoken = np.stack([found[mine == voice].sum(axis=0) for voice in range(voices)])
    rows, columns = linear_sum_assignment(spoken, maximize=True)
    assert rows.tolist() == list(range(voices))
    # By slot for the first second or two; a new voice needs 8 frames before it is found; and smoothing
    # blurs a border by 2 frames on each side.
    borders = np.count_nonzero(np.diff(mine)) + 1
    right = found.argmax(axis=1) == columns[mine]
    assert np.count_nonzero(~right) <= 24 + voices * (8 + chunk) + 5 * borders
    assert np.mean(right[-24:]) > 0.6  # the last turn, without new voices


@given(seed=st.integers(0, 1000), known=st.integers(0, 60), most=st.integers(1, 4))
@settings(max_examples=50)
def test_how_many_speak_is_kept_and_no_more_columns_than_allowed_are_taken(seed, known, most):
    rng = np.random.default_rng(seed)
    probs = (rng.random((60, 4)) ** 3).astype(np.float32)
    before = np.zeros((known, 4), np.float32)
    before[:, :most] = rng.random((known, most)) ** 3
    found = by_known_voice(probs, rng.normal(size=(60, DIM)).astype(np.float32), before, CLUSTERING, most)
    assert found.dtype == np.float32
    assert ((found >= 0) & (found <= 1)).all()
    taken = found.any(axis=0)
    assert not taken[most:].any()
    np.testing.assert_allclose(found.sum(1), np.minimum(probs.sum(1), taken.sum()), atol=1e-4)


def test_who_is_new_gets_the_first_free_column():
    who, emb = conversation(0, 3, turns=3)
    probs = slots_at_random(0, len(who), slots=4)
    first = int(np.flatnonzero(who != who[0])[0])
    before = np.zeros((first, 4), np.float32)
    before[:, 1] = 0.9
    found = by_known_voice(probs, emb, before, CLUSTERING, most=4)
    assert [int(found[who == voice].sum(axis=0).argmax()) for voice in dict.fromkeys(who)] == [1, 0, 2]
    full = by_known_voice(probs, emb, before, CLUSTERING, most=2)  # the last voice is merged into the nearest
    assert not full[:, 2:].any()
    np.testing.assert_allclose(full.sum(axis=1), probs.sum(axis=1), atol=1e-5)


def test_who_comes_first_gets_the_first_column():
    before = np.zeros((20, 4), np.float32)
    before[:, :3] = 0.05  # none above the threshold
    found = by_known_voice(slots_at_random(0, 60, slots=4), np.tile(np.eye(DIM)[0], (60, 1)), before, CLUSTERING, 4)
    assert found.any(axis=0).tolist() == [True, False, False, False]


def test_one_voice_that_was_taken_for_two_is_the_longer_of_them_from_then_on():
    who, emb = conversation(0, 1, turns=3)
    probs = slots_at_random(0, len(who), slots=4)
    before = np.zeros((len(who) - 12, 4), np.float32)
    before[:30, 2] = before[30:, 1] = 0.9
    found = by_known_voice(probs, emb, before, CLUSTERING, most=4)
    assert found.any(axis=0).tolist() == [False, True, False, False]


def test_a_slip_of_a_few_frames_does_not_take_a_voice_to_another_column():
    before = np.zeros((60, 4), np.float32)
    before[:3, 0] = before[3:, 1] = 0.9
    found = by_known_voice(slots_at_random(0, 80, slots=4), np.tile(np.eye(DIM)[0], (80, 1)), before, CLUSTERING, 4)
    assert found.any(axis=0).tolist() == [False, True, False, False]


def test_who_has_most_of_a_column_keeps_it_from_one_who_was_in_no_other():
    who = np.repeat([0, 1, 0, 1], [60, 20, 30, 20])
    before = np.zeros((110, 4), np.float32)
    before[:80, 0] = before[80:, 1] = 0.9  # two voices in a column, and then the one of them in the next
    found = by_known_voice(slots_at_random(0, 130, slots=4), np.eye(DIM)[who], before, CLUSTERING, most=4)
    assert [int(found[who == voice].sum(axis=0).argmax()) for voice in range(2)] == [0, 2]


def test_who_is_new_does_not_get_a_column_that_was_somebodys():
    who = np.repeat([0, 1], [60, 40])
    before = np.zeros((60, 4), np.float32)
    before[:30, 0] = before[30:, 1] = 0.9  # one voice, split in two
    found = by_known_voice(slots_at_random(0, 100, slots=4), np.eye(DIM)[who], before, CLUSTERING, most=4)
    assert [int(found[who == voice].sum(axis=0).argmax()) for voice in (0, 1)] == [0, 2]


def test_in_a_stream_voices_lie_further_apart():
    who = np.repeat([0, 1], 64)
    voices = np.array([[1.0, 0.0], [0.58, np.sqrt(1 - 0.58**2)]])  # 0.42 apart
    nothing = np.zeros((0, 3), np.float32)
    for threshold, count in ((0.36, 1), (0.34, 2)):
        found = by_known_voice(slots_at_random(0, 128), voices[who], nothing, ClusteringConfig(threshold), most=3)
        assert found.any(axis=0).sum() == count


def test_the_widest_threshold_makes_everybody_one():
    who, emb = conversation(0, 3, turns=6)
    probs = slots_at_random(0, len(who), slots=4)
    found = by_known_voice(probs, emb, probs[:0], ClusteringConfig(1.99), most=4)
    assert found.any(axis=0).tolist() == [True, False, False, False]


def remembering(known: list[torch.Tensor], emb: list[torch.Tensor], queued: list[torch.Tensor]) -> StreamState:
    """Return streams with stored voices, probabilities (t, 3) and embeddings (t, DIM), and a FIFO of these speakers."""
    config = replace(CONFIG, fifo_frames=200, clustering=replace(CLUSTERING, max_speakers=3))
    state = start(config, DIM, 3, len(known))
    for row, (probs, sounds, fifo) in enumerate(zip(known, emb, queued, strict=True)):
        state.voices.probs[row, : len(probs)], state.voices.emb[row, : len(sounds)] = probs, sounds
        state.fifo.probs[row, : len(fifo)] = fifo
    count = torch.tensor([[len(probs), len(fifo)] for probs, fifo in zip(known, queued, strict=True)])
    voices, fifo = (replace(part, length=count[:, at]) for at, part in enumerate((state.voices, state.fifo)))
    given, _ = end_to_end([(voices.probs, voices.length), (fifo.probs, fifo.length)], state.returned.shape[1])
    return replace(state, voices=voices, fifo=fifo, returned=given)


def coming(length: list[int], state: StreamState, dim: int = DIM) -> Chunk:
    """Return new frames: so many are shown after the FIFO."""
    count = torch.tensor(length) - state.fifo.length
    return Chunk(torch.zeros(len(length), int(count.max()), dim), 0 * count, count, 0 * count)


def test_rows_do_not_know_of_each_other_nor_of_padding():
    who, emb = conversation(1, 2, turns=4)
    frames = len(who)
    rng = np.random.default_rng(1)
    probs = torch.from_numpy(rng.random((3, frames, 3)).astype(np.float32))
    rows = torch.from_numpy(np.stack([emb, *rng.normal(size=(2, *emb.shape))]).astype(np.float32))
    parts = [probs[0, :30] * 0.5, probs[1, :0], probs[2, :5]], [rows[0, :30], rows[1, :0], rows[2, :5]]
    state = remembering(*parts, [probs[0, :20] * 0.5, probs[1, :0], probs[2, :40]])
    length = [frames - 9, frames, 40]  # the last is inactive
    found, past = rows_by_voice(probs, rows, state, coming(length, state), CLUSTERING, 3)
    for row, count in enumerate(length[:2]):
        own = remembering(*([part[row]] for part in parts), [state.fifo.probs[row, : int(state.fifo.length[row])]])
        alone, known = rows_by_voice(
            probs[row, None, :count], rows[row, None, :count], own, coming([count], own), CLUSTERING, 3
        )
        torch.testing.assert_close(found[row, :count], alone[0], rtol=0, atol=0)
        torch.testing.assert_close(past[row], known[0], rtol=0, atol=0)
    assert torch.equal(found[0, frames - 9 :], probs[0, frames - 9 :])
    assert torch.equal(found[2], probs[2])
    assert torch.equal(past[2], state.voices.probs[2])


def test_a_finer_output_follows_the_voices_of_its_frames():
    who, emb = conversation(2, 2, turns=4)
    probs = torch.from_numpy(slots_at_random(2, len(who)))[None]
    rows = torch.from_numpy(emb.astype(np.float32))[None]
    state = remembering([probs[0, :0]], [rows[0, :0]], [probs[0, :0]])
    chunk = coming([len(who)], state)
    coarse = rows_by_voice(probs, rows, state, chunk, CLUSTERING, 3)[0][0]
    fine = rows_by_voice(probs.repeat_interleave(4, dim=1), rows, state, chunk, CLUSTERING, 3)[0][0]
    torch.testing.assert_close(fine, coarse.repeat_interleave(4, dim=0), atol=1e-4, rtol=0)


def test_there_may_be_more_voices_than_the_model_has_slots():
    who, emb = conversation(3, 5, turns=10)
    state = start(replace(CONFIG, clustering=replace(CLUSTERING, max_speakers=5)), DIM, 3)
    probs = torch.from_numpy(slots_at_random(3, len(who)))[None]
    found, past = rows_by_voice(
        probs, torch.from_numpy(emb)[None].float(), state, coming([len(who)], state), CLUSTERING, 5
    )
    assert (found.shape, past.shape) == ((1, len(who), 5), (1, CONFIG.voice_frames, 5))
    first = [list(dict.fromkeys(who.tolist())).index(voice) for voice in who]  # columns in order of arrival
    assert (found[0].argmax(dim=1) == torch.tensor(first)).float().mean() > 0.8
    torch.testing.assert_close(found.sum(dim=2), probs.sum(dim=2), atol=1e-4, rtol=0)


@pytest.mark.parametrize("finer", [1, 4])
def test_a_voice_that_is_remembered_keeps_its_column(finer):
    who = torch.arange(200) // 40 % 2
    rows, before = torch.eye(DIM)[who], 0.9 * torch.eye(3)[2 - who]
    state = remembering([before[:120]], [rows[:120]], [before[120:180]])  # the FIFO begins with the second voice
    probs = torch.from_numpy(slots_at_random(0, 80).repeat(finer, axis=0))[None]
    found, past = rows_by_voice(probs, rows[None, 120:], state, coming([80], state), CLUSTERING, 3)
    assert (found[0].argmax(dim=1) == (2 - who[120:]).repeat_interleave(finer)).float().mean() > 0.9
    torch.testing.assert_close(past[0, :120].argmax(dim=1), 2 - who[:120])
    new = remembering([before[:0]], [rows[:0]], [before[:0]])
    assert not rows_by_voice(probs, rows[None, 120:], new, coming([80], new), CLUSTERING, 3)[0][..., 2].any()


def test_a_voice_that_is_forgotten_leaves_its_column():
    who = torch.arange(120) // 40 % 2
    rows, before = torch.eye(DIM)[who], 0.6 * torch.eye(3)[who + 1]
    after = forget(remembering([before], [rows], [before[:0]]), 1)
    assert int(after.voices.length) == 42
    assert torch.equal(after.voices.emb[0, 1:41], rows[40:80])
    assert torch.equal(after.voices.probs[0, 1:41], 0.6 * torch.eye(3)[torch.ones(40, dtype=torch.int64)])
    assert not after.voices.emb[0, [0, *range(41, 150)]].any()
    assert not after.voices.probs[0, [0, *range(41, 150)]].any()


def test_what_was_said_before_and_after_who_is_forgotten_is_no_stretch_of_one():
    who = torch.tensor([0] * 12 + [1] * 12 + [2] * 12)
    state = remembering([0.9 * torch.eye(3)[who]], [torch.eye(DIM)[who]], [torch.zeros(0, 3)])
    after = forget(state, 1)
    count = int(after.voices.length)
    kept = worth_keeping(after.voices.probs[0, :count].numpy(), 100)
    assert alone(after.voices.probs[0, kept].numpy()).tolist() == [True] * 12 + [False] + [True] * 12


def test_who_was_taken_for_two_is_remembered_as_one_from_then_on():
    rows, before = torch.eye(DIM)[torch.zeros(100, dtype=torch.int64)], torch.zeros(80, 3)
    before[:30, 2] = before[30:, 1] = 0.9
    state = remembering([before], [rows[:80]], [before[:0]])
    probs = torch.from_numpy(slots_at_random(0, 20))[None]
    _, past = rows_by_voice(probs, rows[None, 80:], state, coming([20], state), CLUSTERING, 3)
    assert past[0, :80].any(dim=0).tolist() == [False, True, False]


def test_who_was_merged_for_a_while_has_the_column_that_was_returned():
    who = torch.arange(120) // 20 % 2
    rows, returned = torch.eye(DIM)[who], 0.9 * torch.eye(3)[1 - who]
    merged = 0.9 * torch.eye(3)[torch.zeros(100, dtype=torch.int64)]
    state = replace(remembering([merged], [rows[:100]], [merged[:0]]), returned=torch.zeros(1, 350, 3))
    state.returned[0, :100] = returned[:100]
    probs = torch.from_numpy(slots_at_random(0, 20))[None]
    found, past = rows_by_voice(probs, rows[None, 100:], state, coming([20], state), CLUSTERING, 3)
    assert (found[0].argmax(dim=1) == 0).all()
    torch.testing.assert_close(past[0, :100].argmax(dim=1), 1 - who[:100])


def test_what_was_returned_of_voices_and_fifo_is_known():
    model, rng = hearing_model(3.0, -5.0, -5.0), torch.Generator().manual_seed(0)
    config = replace(CONFIG, fifo_frames=7, update_period_frames=3)
    state = start(config, 16, 3)
    given = state.returned[:, :0]
    for _ in range(9):
        chunk = Chunk(torch.randn(1, 9, 16, generator=rng), *(torch.tensor([count]) for count in (2, 5, 2)))
        with torch.no_grad():
            state, found = step(model, config, state, chunk)
        given = torch.cat([given, found], dim=1)
        count = int(state.voices.length + state.fifo.length)
        assert count == given.shape[1]  # there is room for all voices, of whom one speaks at a time
        torch.testing.assert_close(state.returned[:, :count], given, rtol=0, atol=0)
        assert not state.returned[:, count:].any()


def test_what_was_returned_goes_with_its_frames_when_a_voice_is_forgotten():
    who = torch.arange(120) // 40 % 2
    before = 0.9 * torch.eye(3)[who]
    state = remembering([before[:100]], [torch.eye(DIM)[who[:100]]], [before[100:]])
    given = torch.rand(120, 3, generator=torch.Generator().manual_seed(0))
    state.returned[0, :120] = given
    after = forget(state, 1)
    left = torch.tensor([*range(41), *range(80, 120)])  # a frame stays to separate what was said before and after
    assert int(after.voices.length + after.fifo.length) == len(left)
    assert torch.equal(after.returned[0, : len(left), :2], given[left][:, [0, 2]])
    assert not after.returned[0, len(left) :].any()


@given(seed=st.integers(0, 1000), frames=st.integers(0, 90))
@settings(max_examples=100)
def test_what_is_kept_of_a_past_tells_voices_apart(seed, frames):
    rng = np.random.default_rng(seed)
    who = np.repeat(rng.integers(-1, 3, 12), rng.integers(1, 12, 12))  # -1 is silence
    probs = np.where(who[:, None] == np.arange(3), 0.9, 0.02).astype(np.float32)
    kept = worth_keeping(probs, frames)
    assert len(kept) <= frames
    assert (np.diff(kept) > 0).all()
    assert np.array_equal(worth_keeping(probs[kept], frames), np.arange(len(kept)))
    speech = [np.flatnonzero(who == speaker) for speaker in range(3)]
    of_each = [kept[who[kept] == speaker] for speaker in range(3)]
    for own, left in zip(speech, of_each, strict=True):
        np.testing.assert_array_equal(left, own[len(own) - len(left) :])  # the oldest go first
    most = max(map(len, of_each))
    for own, left in zip(speech, of_each, strict=True):
        assert len(left) in (len(own), most)
    # Speech is not joined to what follows a silence.
    for before, after in itertools.pairwise(kept):
        if who[before] >= 0 and who[after] >= 0:
            assert (who[before:after] >= 0).all()
    # One more frame of each speaker with more would not fit.
    more = sum(len(own) > len(left) for own, left in zip(speech, of_each, strict=True))
    gaps = np.count_nonzero((who < 0) & (np.concatenate([[-1], who[:-1]]) >= 0))
    assert not more or sum(map(len, of_each)) + more + gaps > frames


def test_those_who_leave_the_fifo_are_remembered_as_they_sounded(monkeypatch: pytest.MonkeyPatch):
    model, seen = hearing_model(3.0, -5.0, -5.0), []
    forward = model.forward_frames
    monkeypatch.setattr(model, "forward_frames", lambda *given: seen.append(forward(*given)) or seen[-1])
    rng = torch.Generator().manual_seed(0)
    state, expected = start(CONFIG, 16, 3), []
    for _ in range(9):
        emb = torch.randn(1, 9, 16, generator=rng)
        chunk = Chunk(emb, *(torch.tensor([count]) for count in (2, 5, 2)))
        first, queued = int(state.cache.length), int(state.fifo.length)
        with torch.no_grad():
            state, _ = step(model, CONFIG, state, chunk)
        heard = seen[-1].emb[0, first:]
        heard = torch.cat([heard[:queued], heard[queued + 2 : queued + 7]])  # without the contexts
        expected.append(heard[: queued + 5 - int(state.fifo.length)])
        remembered = int(state.voices.length)
        assert torch.equal(state.voices.emb[0, :remembered], torch.cat(expected))
        assert (state.voices.probs[0, :remembered].sum(dim=1) > 0.9).all()
    assert remembered > 30


def test_a_row_that_sits_out_keeps_its_bits():
    model, rng = hearing_model(3.0, -5.0, -5.0), torch.Generator().manual_seed(0)
    state, none = start(CONFIG, 16, 3, 2), torch.tensor([0, 0])
    with torch.no_grad():
        for lengths in ([5, 5], [5, 5], [5, 5], [5, 0]):
            before = state
            chunk = Chunk(torch.randn(2, 5, 16, generator=rng), none, torch.tensor(lengths), none)
            state, _ = step(model, CONFIG, state, chunk)
    assert before.voices.length[1] > 0
    torch.testing.assert_close(asdict(one_row(state, 1)), asdict(one_row(before, 1)), rtol=0, atol=0)


@pytest.mark.parametrize("size", [700, 9_000])
def test_neither_the_cut_of_pushes_nor_a_restart_changes_a_stream(size):
    wave = noise(60_000, seed=3)
    whole = Session(MODEL, CONFIG)
    expected = stream_probabilities(whole, [wave])
    assert expected.any()
    session, found = Session(MODEL, CONFIG), []
    for first in range(0, len(wave), size):
        found.append(session.push(wave[first : first + size]).probs)
        if first // size == 3:
            session = Session.restore(MODEL, session.snapshot())
    np.testing.assert_array_equal(np.concatenate([*found, session.flush().probs]), expected)


def test_presets_stream_as_the_postprocessing_says():
    by_slot, by_voice = PostprocessConfig(), PostprocessConfig(clustering=CLUSTERING)
    diarizer = Diarizer(MODEL, by_voice, "tiny")
    assert diarizer.stream("1s").config == diarizer.presets["1s"]
    assert diarizer.stream(diarizer.presets["1s"]).config == diarizer.presets["1s"]
    assert diarizer.presets["1s"].clustering == CLUSTERING
    by_slots = replace(diarizer.presets["1s"], clustering=None)
    assert diarizer.stream("1s", postprocess=by_slot).config == by_slots
    assert Diarizer(MODEL, by_slot, "tiny").presets["1s"] == by_slots
    assert diarizer.stream(StreamConfig(9)).config.clustering is None  # an explicit configuration is not changed
    remembering = Diarizer(remembering_model("xl"), by_voice, "remembering")
    assert remembering.stream().config.clustering is None

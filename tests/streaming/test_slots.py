"""The slots of a session: reset for somebody new, named, limited, and full."""

import dataclasses

import numpy as np
import pytest
import torch

from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import SpeakerCacheConfig
from sortformer.streaming import Session, stream_probabilities
from sortformer.streaming.forget import forget
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.streaming.tiny import CONFIG, MODEL, WAVE, hearing_model, noise


@MAXIMUM_MAY_BE_REACHED
def test_a_reset_slot_is_somebody_new():
    session = Session(MODEL, CONFIG, PostprocessConfig())
    before = session.push(WAVE)
    slot = int(before.probs.mean(axis=0).argmax())
    known = {turn.speaker for turn in (*before.turns, *before.tentative)}
    session.reset_slot(slot)
    memory = session._position.memory
    assert sorted(session._position.channels) == [0, 1, 2]
    assert session._position.channels[slot] == 2
    assert not memory.cache.probs[..., 2].any()
    assert not memory.fifo.probs[..., 2].any()
    session.push(noise(60_000, seed=4))
    names = {turn.speaker for turn in session.finish()}
    assert len(names - known) >= 1


def test_names_say_whose_slot_to_reset():
    session = Session(hearing_model(-3.0, -3.0, 3.0), CONFIG)
    assert session.names == (None, None, None)
    slot = session.enroll("Ada", WAVE)
    session.push(WAVE)
    assert (slot, session.names) == (2, (None, None, "Ada"))
    assert Session.restore(session.model, session.snapshot()).names == session.names
    session.reset_slot(session.names.index("Ada"))
    assert session.names == (None, None, None)
    session.push(WAVE)
    assert session.finish().speakers == ("Ada", "speaker_0")
    assert session.names == (None, None, "speaker_0")


def test_the_turns_of_a_reset_slot_come_with_the_next_update():
    session = Session(hearing_model(3.0, 3.0, -3.0), CONFIG)
    session.push(WAVE)
    session.reset_slot(0)
    restored = Session.restore(session.model, session.snapshot())
    end = round(session.num_frames * session.step_s - 0.01, 2)
    for each in (session, restored):
        assert [(turn.start, turn.end, turn.speaker) for turn in each.push([]).turns] == [(0, end, "speaker_0")]
        assert each.push([]).turns == ()
    session.reset_slot(1)
    session.reset()
    assert session.push([]).turns == ()


def test_whoever_stays_keeps_the_slot_when_others_leave():
    session = Session(hearing_model(3.0, -3.0, -3.0), CONFIG)
    for slot in range(2):  # remaining slots move up a channel, and the first channel is the active one
        session.reset_slot(slot)
    session = Session.restore(session.model, session.snapshot())
    speaking = session.push(WAVE).probs > 0.5
    assert speaking.all(axis=0).tolist() == speaking.any(axis=0).tolist() == [False, False, True]


@pytest.mark.parametrize("slot", [0, 1, 2])
def test_a_reset_slot_is_free_again_where_not_all_may_speak(slot):
    model = hearing_model(3.0, 3.0, 3.0)
    session = Session(model, dataclasses.replace(CONFIG, max_speakers=2))
    session.push(WAVE)
    session.reset_slot(slot)
    probs = session.push(noise(60_000, seed=4)).probs
    assert (probs[:, :2] > 0.9).all()
    assert not probs[:, 2:].any()
    memory = session._position.memory
    assert not memory.cache.probs[..., 2:].any()
    assert not memory.fifo.probs[..., 2:].any()
    assert len(session.finish().speakers) == (2 if slot == 2 else 3)


def test_what_may_not_speak_is_heard_in_what_may():
    """A voice split over two slots is one speaker, the first slot's, also where the others may not speak."""
    model = hearing_model(0.1, -0.1, -3.0)
    least_error = PostprocessConfig(decision="least_error")
    free, one = (Session(model, dataclasses.replace(CONFIG, max_speakers=most), least_error) for most in (None, 1))
    for session in (free, one):
        session.push(WAVE)
    assert one.finish().turns == free.finish().turns != ()


def test_forgetting_a_channel_drops_its_frames_and_moves_the_later_ones_up(session):
    session.push(noise(60_000, seed=5))
    memory = session._position.memory
    after = forget(memory, 0)
    for before, found in ((memory.cache, after.cache), (memory.fifo, after.fifo)):
        count = int(before.length)
        old = before.probs[0, :count]
        kept = old[:, 0] <= 0.5
        assert 0 < kept.sum() < len(old)
        assert int(found.length) == kept.sum()
        expected = torch.cat([old[kept][:, 1:], torch.zeros(int(kept.sum()), 1)], dim=1)
        assert torch.equal(found.probs[0, : len(expected)], expected)
        assert torch.equal(found.emb[0, : len(expected)], before.emb[0, :count][kept])
        assert not found.emb[0, len(expected) :].any()


def test_where_every_slot_has_a_speaker_there_may_be_more():
    model = hearing_model(3.0, 3.0, 3.0)
    session, told = (Session(model, dataclasses.replace(CONFIG, max_speakers=most), uri="hall") for most in (None, 3))
    session.push(WAVE)
    told.push(WAVE)
    with pytest.warns(UserWarning, match="hall has 3 speakers, the maximum, and any further one is merged") as caught:
        assert len(session.finish().speakers) == len(told.finish().speakers) == 3
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(("most", "taken"), [(None, 3), (2, 2), (1, 1)])
def test_a_stream_takes_as_many_columns_as_it_may(most: int | None, taken: int):
    config = dataclasses.replace(CONFIG, clustering=ClusteringConfig(0.001), max_speakers=most)
    wave = noise(60_000)
    sounds = [wave[:20_000], np.cumsum(wave[20_000:40_000]) / 8, np.diff(wave[40_000:], append=0.0)]
    probs = stream_probabilities(Session(hearing_model(3.0, -5.0, -5.0), config), sounds)
    assert (probs > 0.5).any(axis=0).sum() == taken
    np.testing.assert_allclose(probs[20:].sum(axis=1), 0.966, atol=0.01)


@pytest.mark.parametrize(
    ("frames", "voices", "slots", "limit"), [(14, 8, 7, 7), (0, 8, 8, 8), (14, 5, 5, 5), (14, 2, 3, 2), (6, 8, 3, 3)]
)
def test_a_stream_has_a_slot_for_each_voice_as_far_as_the_speaker_cache_has_room(frames, voices, slots, limit):
    by_voice = ClusteringConfig(0.4, max_speakers=voices)
    config = dataclasses.replace(CONFIG, speaker_cache=SpeakerCacheConfig(frames, 1), clustering=by_voice)
    assert (config.slots(3), config.speaker_limit(3)) == (slots, limit)
    assert dataclasses.replace(config, max_speakers=1).speaker_limit(3) == 1
    session = Session(MODEL, config)
    assert session.push(noise(40_000)).probs.shape[1] == session.num_slots == slots
    assert dataclasses.replace(config, clustering=None).slots(3) == 3


def test_more_speakers_may_be_allowed_than_there_are_slots():
    by_voice = dataclasses.replace(CONFIG, clustering=ClusteringConfig(0.4))
    sessions = [Session(MODEL, dataclasses.replace(by_voice, max_speakers=most)) for most in (None, 9)]
    probs = [session.push(noise(40_000)).probs for session in sessions]
    np.testing.assert_array_equal(*probs)

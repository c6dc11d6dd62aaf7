"""Enrolled voices in a stream."""

import dataclasses
import warnings

import numpy as np
import pytest
import soundfile
import torch

from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.postprocess import turns
from sortformer.streaming import Session, stream_probabilities
from sortformer.streaming.known import slot_of_clip
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.streaming.tiny import CONFIG, MODEL, WAVE, hearing_model, noise, tiny_model

pytestmark = MAXIMUM_MAY_BE_REACHED

CLIP = noise(30_000, seed=7)
EXPECTED = stream_probabilities(Session(MODEL, CONFIG), [WAVE])


def test_an_enrolled_voice_keeps_its_name_and_slot():
    session, plain = Session(MODEL, CONFIG), Session(MODEL, CONFIG)
    slot = session.enroll("chair", CLIP)
    assert (session.duration_s, session.num_frames) == (0.0, 0)
    assert int(session._position.memory.cache.length + session._position.memory.fifo.length) > 0
    restored = Session.restore(MODEL, session.snapshot())
    update = session.push(WAVE)
    assert update.first_frame == 0
    probs = np.concatenate([update.probs, session.flush().probs])
    plain.push(WAVE)
    plain.flush()
    assert len(probs) == plain.num_frames
    expected = turns(probs, PostprocessConfig(), session.step_s, duration=session.duration_s, names={slot: "chair"})
    assert [(turn.start, turn.speaker) for turn in session.finish()] == [
        (turn.start, turn.speaker) for turn in expected
    ]
    restored.push(WAVE[:12_345])
    restored.push(WAVE[12_345:])
    assert restored.finish() == session.finish()
    assert "chair" in session.finish().speakers
    session.reset()
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), EXPECTED)


def test_the_clip_is_heard_as_if_it_had_come_first():
    session, whole = Session(MODEL, CONFIG), Session(MODEL, CONFIG)
    session.enroll("chair", CLIP)
    whole.push(CLIP)
    whole.flush()
    ours, theirs = (dataclasses.asdict(each._position.memory) for each in (session, whole))
    torch.testing.assert_close(ours, theirs)


def test_clips_may_be_files_of_any_rate(tmp_path):
    soundfile.write(tmp_path / "chair.flac", np.clip(CLIP, -1, 1), 8_000)
    session = Session(MODEL, CONFIG)
    assert session.enroll("chair", tmp_path / "chair.flac") in range(3)
    assert session._position.memory.fifo.length == CONFIG.fifo_frames or session._position.memory.cache.length > 0


@pytest.mark.parametrize(
    ("name", "clip", "reason"),
    [
        (5, CLIP, "must be a string"),
        ("", CLIP, "is empty"),
        ("speaker_1", CLIP, "is a label of the toolkit"),
        ("guest", CLIP[:15_000], "lasts 0.94 s: at least 1 s is needed"),
        ("guest", np.zeros(32_000, np.float32), "no voice was found in the clip of 'guest'"),
        ("guest", "absent.wav", "the clip of 'guest': absent.wav does not exist"),
    ],
)
def test_clips_that_show_no_voice_are_refused_and_change_nothing(session, name, clip, reason):
    with pytest.raises(InputError, match=reason):
        session.enroll(name, clip)
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), EXPECTED)


def test_voices_are_enrolled_before_the_stream_and_as_long_as_there_are_slots(session):
    session.enroll("chair", CLIP)
    with pytest.raises(InputError, match="'chair' is given twice"):
        session.enroll("chair", CLIP)
    full = Session(MODEL, dataclasses.replace(CONFIG, max_speakers=1))
    full.enroll("chair", CLIP)
    with pytest.raises(InputError, match=r"no free slot for 'guest': all are taken, by chair$"):
        full.enroll("guest", CLIP)
    by_voice = Session(MODEL, dataclasses.replace(CONFIG, max_speakers=1, clustering=ClusteringConfig(1.99)))
    by_voice.enroll("chair", CLIP)
    with pytest.raises(InputError, match=r"all are taken, by chair; max_speakers may be 40$"):
        by_voice.enroll("guest", CLIP)
    session.push(WAVE[:1])
    with pytest.raises(InputError, match="it is too late to enroll 'guest'"):
        session.enroll("guest", CLIP)


def test_a_name_that_is_taken_can_be_written(session):
    session.enroll("the chair", CLIP)
    session.push(WAVE)
    found = session.finish()
    assert "the chair" in found.speakers
    assert " the_chair " in found.to_rttm()


def test_a_clip_of_a_voice_that_is_known_already_is_refused():
    model = hearing_model(3.0, -3.0, -3.0)
    session = Session(model, CONFIG)
    assert session.enroll("chair", CLIP) == 0
    with pytest.raises(InputError, match="the clip of 'guest' sounds like 'chair'"):
        session.enroll("guest", CLIP)
    update = session.push(WAVE)
    assert update.speaking == ("chair",)
    assert session.finish().speakers == ("chair",)


def test_a_clip_is_of_whoever_speaks_most_in_it():
    taken = {0: "Ada", 1: "Bea"}
    assert slot_of_clip("Cem", np.array([0.5, 0.2, 1.0, 2.0]), [2, 3], taken) == 3
    for spoken, other in (([3.0, 0.5, 1.0, 2.0], "Ada"), ([0.5, 3.0, 1.0, 2.0], "Bea")):
        with pytest.raises(InputError, match=f"the clip of 'Cem' sounds like '{other}'"):
            slot_of_clip("Cem", np.array(spoken), [2, 3], taken)


def test_voices_that_sound_alike_are_both_enrolled():
    by_voice = dataclasses.replace(CONFIG, clustering=ClusteringConfig(1.99), voice_frames=60)
    session = Session(hearing_model(3.0, -3.0, -3.0), by_voice)
    clips = [np.sin(np.arange(30_000) * tone).astype(np.float32) / 2 for tone in (0.2, 1.5)]
    assert session.enroll("chair", clips[0]) == 0
    with pytest.warns(UserWarning, match="the clips of 'chair' and 'guest' sound like one voice") as caught:
        assert session.enroll("guest", clips[1]) == 1
    assert caught[0].filename == __file__
    restored = Session.restore(session.model, session.snapshot())
    for each in (session, restored):
        each.push(np.concatenate([clips[1], clips[0], clips[1]]))
        assert set(each.finish().speakers) == {"chair", "guest"}
    session.reset()
    session.enroll("chair", clips[0])
    same, before = pytest.warns(match="'chair' and 'other' sound like one voice"), session.snapshot()
    with same, pytest.raises(InputError, match="the clip of 'other' sounds like 'chair'"):
        session.enroll("other", clips[0])
    assert session.snapshot() == before


def test_a_voice_is_known_in_the_slot_that_has_its_name():
    """Even if the stream, which hears the clip bit by bit, took most of it for somebody else."""
    by_voice = dataclasses.replace(CONFIG, clustering=ClusteringConfig(0.3), voice_frames=60)
    session = Session(tiny_model(3, gain=5.0), by_voice)
    slot = session.enroll("chair", noise(32_000, seed=10))
    assert slot > 0
    assert session._position.memory.known[0].any(dim=1).nonzero().tolist() == [[slot]]


def test_the_next_voice_of_a_slot_is_not_compared_with_the_one_that_left():
    by_voice = dataclasses.replace(CONFIG, clustering=ClusteringConfig(1.99), voice_frames=60)
    session = Session(hearing_model(3.0, -3.0, -3.0), by_voice)
    for name, tone in (("chair", 0.2), ("guest", 1.5)):
        with warnings.catch_warnings(action="ignore"):
            session.enroll(name, np.sin(np.arange(30_000) * tone).astype(np.float32) / 2)
    second = session._position.memory.known[0, 1]
    session.reset_slot(0)
    known = session._position.memory.known[0]
    torch.testing.assert_close(known[0], second)
    assert second.any()
    assert not known[1:].any()


def test_a_clip_in_which_the_model_hears_nobody_is_refused():
    with pytest.raises(InputError, match="no voice was found in the clip of 'chair'"):
        Session(hearing_model(-3.0, -3.0, -3.0), CONFIG).enroll("chair", CLIP)


def test_a_clip_with_less_than_half_a_second_of_speech_is_refused():
    model, clip = tiny_model(2), noise(16_000, seed=1)
    spoken = (stream_probabilities(Session(model, CONFIG), [clip]) > 0.5).sum(axis=0)
    assert 0 < 0.08 * spoken.max() < 0.5
    with pytest.raises(InputError, match="no voice was found in the clip of 'guest'"):
        Session(model, CONFIG).enroll("guest", clip)


def test_somebody_known_may_be_heard_in_a_clip_no_longer_than_the_voice_itself():
    session = Session(hearing_model(3.0, 3.0, -3.0), CONFIG)
    assert [session.enroll(name, CLIP) for name in ("chair", "guest")] == [0, 1]

"""The level of a stream: that of its detected speech, after a rather loud prior."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer import Diarizer, audio
from sortformer.audio.loudness import UNHEARD, decibels, levelled, peak
from sortformer.config.stream import STREAM_PRESETS
from sortformer.streaming import Session, front
from sortformer.streaming.front import hear, next_chunk, start_front, told
from sortformer.streaming.level import NEW, StreamLevel
from tests.strategies import spread
from tests.streaming.tiny import noise, normalized

FRAME = 1280
DEMO = Path(__file__).parents[2] / "demos/meeting.wav"
SPOKEN, SILENT = np.array([True]), np.array([False])
WAVE = np.random.default_rng(0).uniform(-1, 1, FRAME).astype(np.float32)


def heard(frames: int, db: float, spoken: np.ndarray = SPOKEN, begun: StreamLevel = NEW) -> StreamLevel:
    """Return the level after frames of 80 ms with peaks at ``db``, each reported at once."""
    wave = (WAVE / np.abs(WAVE - WAVE.mean()).max() * 10 ** (db / 20)).astype(np.float32)
    for _ in range(frames):
        begun = begun.after(wave).told(spoken)
    return begun


def db_of(known: StreamLevel) -> float:
    return decibels(known.value)


@pytest.mark.parametrize("db", [-50, -30, -20, -6])
def test_speech_tells_the_level_the_sooner_the_more_there_is(db: float):
    first = max(-20.0, db)
    for frames in (20, 80, 800):
        weight = frames / (20 + frames)
        falls = 0.25 * frames * 0.08 if db < -20 else 0.0  # the prior falls, too
        expected = (1 - weight) * max(first - falls, db) + weight * db
        assert db_of(heard(frames, db)) == pytest.approx(expected, abs=0.3)


def test_what_is_no_speech_is_raised_late():
    assert db_of(heard(125, -60, SILENT)) == pytest.approx(-22.5, abs=0.1)
    assert db_of(heard(1250, -60, SILENT)) == pytest.approx(-45, abs=0.1)
    assert db_of(heard(2500, -60, SILENT)) == pytest.approx(-60, abs=0.2)


def test_a_muted_microphone_says_nothing_about_the_level():
    muted = NEW.after(np.zeros(750 * FRAME, np.float32)).told(np.zeros(750, bool))
    assert muted.value == NEW.value
    assert heard(20, -30, begun=muted).value == heard(20, -30).value
    softest = NEW.after(np.where(WAVE > 0, 2.0**-14, 0.0).astype(np.float32).repeat(750))  # of a live one
    assert softest.value < 0.5 * NEW.value


def test_what_is_loud_is_lowered_before_it_is_told():
    loud = heard(13, -6, SILENT)
    assert db_of(loud) == pytest.approx(-6, abs=0.2)
    assert peak(levelled(WAVE * 10 ** (-6 / 20), loud.value)) == pytest.approx(10 ** (-24 / 20), rel=0.03)


def test_noise_between_words_does_not_make_them_louder():
    known = heard(100, -30)
    assert db_of(heard(200, -55, SILENT, known)) == pytest.approx(db_of(known), abs=0.8)


def test_knocks_do_not_set_the_level():
    known = heard(200, -40)
    assert db_of(heard(4, -1, SPOKEN, known)) == pytest.approx(db_of(known), abs=0.3)


@given(cuts=st.lists(spread(0, 50_000), max_size=5).map(sorted), known=st.integers(0, 39))
def test_however_it_is_cut_it_is_as_loud(cuts: list[int], known: int):
    wave, found = 0.01 * noise(50_000), []
    for ends in (cuts, []):
        parts = NEW
        for part in np.split(wave, ends):
            parts = parts.after(part)
        found.append(parts.told(np.arange(known) % 3 == 2).value)
    assert found[0] == found[1]


def test_hours_take_no_more_room_than_seconds():
    hour = NEW.after(np.tile(WAVE, 45_000))
    hour = hour.told(np.ones(45_000, dtype=bool))
    assert hour.spoken.total == 45_000
    assert hour.spoken.counts.shape == hour.every.peaks.counts.shape == NEW.spoken.counts.shape
    assert len(hour.open) == 0
    assert len(hour.begun) < FRAME


def test_frames_are_told_by_the_mean_of_their_outputs():
    known = start_front(Session(normalized("fixed"), STREAM_PRESETS["1s"])._log_mel, NEW.after(np.tile(WAVE, 3)))
    known = replace(known, open=torch.tensor([[3.0], [5.0]]).repeat(1, 16))
    probs = np.zeros((2, 4, 3))
    probs[0, :2, 0] = probs[0, 1:, 2] = 0.7  # 0.875 speakers; in the second frame 0.35
    probs[1, :2, 0] = 0.7
    known = told(known, probs)
    assert isinstance(known.level, StreamLevel)
    assert (known.level.spoken.total, len(known.level.open)) == (1, 1)
    assert (known.spectrum == 3).all()


def test_a_session_tells_each_frame_what_the_model_says_of_it(monkeypatch: pytest.MonkeyPatch):
    wave = noise(160_000)
    session = Session(normalized("fixed"), STREAM_PRESETS["1s"])
    speakers = session.push(wave).probs.sum(axis=1)
    monkeypatch.setattr(front, "_SPEECH", float(np.median(speakers)))  # random model: half is speech
    session.reset()
    spoken = session.push(wave).probs.sum(axis=1) > front._SPEECH
    frames = wave[: FRAME * len(spoken)].reshape(-1, FRAME)[spoken]
    heard = session._position.front
    assert isinstance(heard.level, StreamLevel)
    expected = NEW.after(frames.ravel()).told(np.ones(len(frames), dtype=bool))
    assert 0 < heard.level.spoken.total < len(spoken)
    np.testing.assert_array_equal(heard.level.spoken.counts, expected.spoken.counts)


def test_the_tilt_is_that_of_frames_in_which_somebody_speaks():
    model = normalized("fixed", (-9.0, -5.0))
    heard = after = hear(model.features, start_front(model.features), noise(48_000))
    for _ in range(2):
        after, chunk = next_chunk(model.features, model.encoder, STREAM_PRESETS["1s"], after)
    assert chunk is not None
    begin, count = after.next_frame - int(chunk.length), int(chunk.length)  # the second chunk, after a margin
    probs = np.zeros((count, 1, 3))
    probs[[1, 3], :, 2] = 1.0
    spoken = heard.mel[0, 8 * begin : 8 * (begin + count)].view(-1, 8, 16)[[1, 3]]
    torch.testing.assert_close(told(after, probs).spectrum[0], model.features.power(spoken).sum(dim=(0, 1)))


def test_the_tilt_of_a_clip_is_that_of_all_of_it():
    log_mel = normalized("fixed", (-9.0, -5.0)).features
    heard = hear(log_mel, start_front(log_mel, UNHEARD), noise(48_000), last=True)
    torch.testing.assert_close(heard.spectrum, log_mel.power(heard.mel).sum(dim=1))


def test_samples_that_are_taken_as_they_come_have_no_level():
    session = Session(normalized("none"), STREAM_PRESETS["1s"])
    session.push(noise(48_000))
    assert session._position.front.level is None


def test_a_quiet_microphone_is_heard():
    """With the level of all audio, 12.6 s of the demo's speech would be found at 1 s, against 17.2 at its own level."""
    samples = audio.read(DEMO)
    assert decibels(UNHEARD.after(samples).value) == pytest.approx(-20.5, abs=0.1)
    found = Diarizer.load()(samples * np.float32(10 ** (-20 / 20)), sample_rate=16_000, preset="1s")
    assert sum(turn.end - turn.start for turn in found.turns) > 15.0

"""What is said on a stage is heard where it was asked for, as fast and as dull; babble has no labels."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sortformer.simulate import VoiceBank
from sortformer.simulate.events import Delivery, noted, played
from sortformer.simulate.stage import Stage

HOPS = 60


def stage_of(*phrases: tuple[int, int]) -> Stage:
    """A stage of one slot and a bank of sixty hops with speech in some."""
    activity = np.zeros(HOPS, dtype=bool)
    for start, end in phrases:
        activity[start:end] = True
    bank: Any = SimpleNamespace(activity=activity, audio=np.ones(HOPS * 160, np.int16))
    return Stage(bank, 1, 1, HOPS)


@pytest.mark.parametrize(
    ("others", "at", "before", "after"),
    [
        ((), 10, 3, 3),
        ((), 3, 3, 3),
        ((), 2, 0, 3),  # the conversation begins there
        (((0, 7),), 10, 3, 3),
        (((0, 8),), 10, 0, 3),
        (((33, 40),), 10, 3, 3),
        (((32, 40),), 10, 3, 0),
    ],
)
def test_three_hops_around_a_phrase_are_heard_and_not_labelled_unless_somebody_speaks_in_them(
    others, at, before, after
):
    stage = stage_of((10, 30), *others)
    stage.play(0, 0, 10, at, 20)
    (note,) = stage.notes
    assert (note.source, note.at) == (160 * (10 - before), 160 * (at - before))
    assert note.stored == note.length == 160 * (20 + before + after)
    assert np.flatnonzero(stage.activity[0, 0]).tolist() == list(range(at, at + 20))


def test_a_recording_that_begins_with_speech_has_nothing_before_it():
    stage = stage_of((2, 20))
    stage.play(0, 0, 2, 10, 18)
    assert (stage.notes[0].source, stage.notes[0].at) == (2 * 160, 10 * 160)


def test_a_phrase_is_cut_where_the_conversation_ends():
    stage = stage_of((10, 30))
    stage.play(0, 0, 10, 50, 20)
    (note,) = stage.notes
    assert note.at + note.length == HOPS * 160
    assert note.stored == note.length
    assert np.flatnonzero(stage.activity[0, 0]).tolist() == list(range(50, HOPS))
    stage.play(0, 0, 10, HOPS, 20)
    assert stage.notes == [note]


def test_babble_has_the_last_track_and_no_labels():
    stage = stage_of((10, 30))
    stage.murmur(0, 10, 5, 20)
    (note,) = stage.notes
    assert (note.path, note.source, note.at, note.length) == (1, 1600, 800, 3200)
    assert not stage.activity.any()


def tracks(bank: VoiceBank, stage: Stage) -> np.ndarray:
    """What the one row of a stage of one slot sounds like: its voice, and its babble."""
    return played(noted(stage.notes), bank.audio, 1, 2, stage.num_hops * 160)[0].numpy()


def test_a_tilt_is_a_filter_of_two_taps(bank):
    stages = [Stage(bank, 1, 1, 100) for _ in range(2)]
    for stage, tilt in zip(stages, (0.0, 0.5), strict=True):
        stage.play(0, 0, 0, 0, 100, Delivery(tilt=tilt))
    plain, tilted = (tracks(bank, stage)[0, 200:-200] for stage in stages)  # without the fades
    np.testing.assert_allclose(tilted[1:], (plain[1:] + 0.5 * plain[:-1]) / 1.25**0.5, atol=1e-6)


def test_what_would_murmur_after_the_end_is_not_heard(bank):
    stage = Stage(bank, 1, 1, 100)
    stage.murmur(0, 0, 105, 20)
    assert not tracks(bank, stage).any()
    stage.murmur(0, 30, 90, 20)
    babble = tracks(bank, stage)[-1]
    assert babble[90 * 160 :].any()
    assert not babble[: 90 * 160].any()


@pytest.mark.parametrize("speed", [1.0, 1.25])
def test_the_last_phrase_of_a_bank_may_be_played_to_its_end(bank, speed):
    stage, hops = Stage(bank, 1, 1, 100), len(bank.activity)
    stage.play(0, 0, hops - 50, 0, 50, Delivery(speed=speed))
    (note,) = stage.notes
    assert note.source + note.stored == len(bank.audio)
    assert np.flatnonzero(tracks(bank, stage)[0])[-1] < note.length


@pytest.mark.parametrize("speed", [0.5, 0.95, 1.0, 1.5])
def test_what_is_heard_before_a_phrase_keeps_its_time_at_any_speed(bank, speed):
    stage, phrase = Stage(bank, 1, 1, 300), 1
    start, length = int(bank.phrase_start[phrase]), int(bank.phrase_end[phrase] - bank.phrase_start[phrase])
    stage.play(0, 0, start, 50, length, Delivery(speed=speed))
    (note,) = stage.notes
    before = start * 160 - note.source
    assert before == 480
    assert note.at + before / speed == pytest.approx(50 * 160, abs=80)


def test_a_pause_within_a_turn_that_is_said_faster_is_as_much_shorter():
    stage = stage_of((10, 20), (30, 40))
    stage.play(0, 0, 10, 5, 30, Delivery(speed=1.25))
    assert np.flatnonzero(stage.activity[0, 0]).tolist() == [*range(5, 5 + 8), *range(5 + 16, 5 + 24)]


def test_a_turn_that_is_said_faster_is_shorter_and_higher(bank):
    stages = {speed: Stage(bank, 1, 1, 300) for speed in (0.8, 1.0, 1.25)}
    for speed, stage in stages.items():
        stage.play(0, 0, 0, 0, 200, Delivery(speed=speed))
        spoken = stage.activity[0, 0].nonzero()[0]
        assert spoken[-1] + 1 == pytest.approx(200 / speed, abs=0.1 * 200)  # the bank may pause at the end
        heard = np.flatnonzero(tracks(bank, stage)[0])[-1] / 160
        assert heard == pytest.approx(200 / speed, abs=4)
    pitch = {speed: _loudest_hz(tracks(bank, stage)[0, :8000]) for speed, stage in stages.items()}
    assert pitch[0.8] < pitch[1.0] < pitch[1.25]


def _loudest_hz(sound: np.ndarray) -> float:
    return float(np.abs(np.fft.rfft(sound)).argmax()) * 16_000 / len(sound)

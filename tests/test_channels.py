"""One speaker per channel: leaks between channels are removed, and channels with the same voices are refused."""

import os
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization
from sortformer.audio import read
from sortformer.channels import _power, by_channel, leaks, own_speech
from sortformer.diarizer import Diarizer
from sortformer.errors import Cancelled, InputError
from sortformer.estimates import Probabilities
from sortformer.heard import Heard
from tests.audio.makers import write

DEMO = Path(__file__).parents[1] / "demos/meeting.wav"
RATE, STEP_S = 16_000, 0.08


def sides(*spoken: tuple[float, float], leak: float = 0.1) -> np.ndarray:
    """Return six seconds in which each channel speaks once, over noise, and leaks into the others by ``leak``."""
    rng = np.random.default_rng(0)
    seconds = np.arange(6 * RATE) / RATE
    own = np.stack([(start <= seconds) & (seconds < end) for start, end in spoken], axis=1)
    voices = 0.1 * rng.standard_normal(own.shape) * own
    heard = voices + leak * (voices.sum(axis=1, keepdims=True) - voices)
    return (heard + 1e-4 * rng.standard_normal(own.shape)).astype(np.float32)


def spans(result: Diarization, channel: int) -> list[tuple[float, float]]:
    return [(turn.start, turn.end) for turn in result if turn.speaker == f"channel_{channel}"]


def test_each_channel_has_what_is_said_into_it(diarizer: Diarizer):
    result = diarizer(sides((0.0, 3.0), (3.0, 6.0)), sample_rate=RATE, channel="each")
    assert result.speakers == ("channel_1", "channel_2")
    (one,), (other,) = spans(result, 1), spans(result, 2)
    assert one == pytest.approx((0.0, 3.0), abs=0.1)
    assert other == pytest.approx((3.0, 6.0), abs=0.1)
    assert result.origin is not None
    assert result.origin.settings["channel"] == "each"


def test_both_are_heard_where_both_speak(diarizer: Diarizer):
    result = diarizer(sides((0.0, 4.0), (3.0, 6.0)), sample_rate=RATE, channel="each")
    assert spans(result, 1)[0] == pytest.approx((0.0, 4.0), abs=0.1)
    assert spans(result, 2)[0] == pytest.approx((3.0, 6.0), abs=0.1)


def test_who_says_nothing_has_no_turn(diarizer: Diarizer):
    quiet = sides((0.0, 3.0), (6.0, 6.0), (2.0, 6.0), leak=0.03)
    with pytest.warns(UserWarning, match="the speech in channel 2 of the array is cross-talk"):
        assert diarizer(quiet, sample_rate=RATE, channel="each").speakers == ("channel_1", "channel_3")
    quiet[:, 1] = 0
    with pytest.warns(UserWarning, match="channel 2 of the array is silent"):
        assert diarizer(quiet, sample_rate=RATE, channel="each").speakers == ("channel_1", "channel_3")
    with pytest.warns(UserWarning, match="channel 3 of the array is silent"):
        found = diarizer(quiet[:, [0, 2, 1]], sample_rate=RATE, channel="each")
    assert found.speakers == ("channel_1", "channel_2")


def test_in_a_channel_several_are_one_who_speaks_no_more_than_surely(diarizer: Diarizer):
    talk = sides((0.0, 3.0), (3.0, 6.0))
    slots = diarizer.probabilities(talk, sample_rate=RATE, channel=1).data
    found = diarizer.probabilities(talk, sample_rate=RATE, channel="each").data
    assert slots.sum(axis=1).max() > 1
    assert found.max() == 1


def test_a_frame_hears_the_echo_of_what_begins_in_the_next():
    power = np.full((10, 2), 1e-6)
    power[5, 0], power[4, 1] = 1.0, 0.1
    own = own_speech(np.ones((10, 2)), power, np.array([[0.0, 0.1], [0.0, 0.0]]), STEP_S)
    assert own[5, 0] == 1
    assert own[4, 1] == 0


def test_many_channels_take_memory_for_each_and_not_for_each_pair():
    power = np.ones((100, 100))
    tracemalloc.start()
    try:
        own_speech(power, power, np.zeros((100, 100)), STEP_S)
        assert tracemalloc.get_traced_memory()[1] < 10 * power.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("frames", "lost"), [(0, True), (4, True), (5, False)])
def test_an_echo_may_be_late_by_a_third_of_a_second_and_no_more(frames: int, lost: bool):
    power = np.full((10, 2), 1e-6)
    power[2, 0], power[2 + frames, 1] = 1.0, 0.1
    own = own_speech(np.ones((10, 2)), power, np.array([[0.0, 0.1], [0.0, 0.0]]), STEP_S)
    assert (own[2 + frames, 1] == 0) == lost


@pytest.mark.parametrize(("louder", "kept"), [(2.9, 0.0), (3.1, 1.0)])
def test_speech_of_its_own_is_three_times_as_loud_as_what_may_leak_in(louder: float, kept: float):
    power = np.tile([1.0, 0.1 * louder], (10, 1))
    own = own_speech(np.ones((10, 2)), power, np.array([[0.0, 0.1], [0.0, 0.0]]), STEP_S)
    assert (own == [1.0, kept]).all()


def leak_of(one: np.ndarray | float, other: np.ndarray | float, said: np.ndarray | float = 1.0) -> float:
    """How much of the first of two channels is heard in the second."""
    said, silent, one, other = np.broadcast_arrays(said, 0.0, one, other, np.ones(100))[:-1]
    return leaks(np.stack([said, silent], axis=1), np.stack([one, other], axis=1), STEP_S)[0, 1]


def test_a_leak_is_what_is_always_there():
    begun = np.arange(100)
    assert leak_of(1.0, 0.01) == pytest.approx(0.01)
    assert leak_of(1.0, 4.0) == 1  # as loud as its source, at most
    assert leak_of(1.0, np.where(begun < 40, 0.01, 0.5)) == pytest.approx(0.01 * 10**0.9)  # and somebody, 9 dB above
    assert leak_of(1.0, np.where(begun < 60, 0.01, 0.5)) == pytest.approx(0.01)
    assert leak_of(1.0, 0.01, said=0.4) == 0  # of nobody
    last = begun == 99
    assert leak_of(np.where(last, 1.0, 1e-4), 0.01, said=last) == pytest.approx(0.01)  # of who begins at the end


def test_a_leak_is_told_by_what_is_as_loud_as_who_speaks():
    loud = np.arange(100) < 40
    assert leak_of(np.where(loud, 1.0, 0.09), np.where(loud, 0.01, 0.09)) == pytest.approx(0.01)


@pytest.mark.parametrize(("delay", "leak"), [(0, 0.01), (1, 0.01), (2, 0.01), (4, 0.01), (5, 8e-6)])
def test_a_late_echo_is_measured_when_it_comes(delay: int, leak: float):
    bursts = np.where(np.arange(100) % 20 < 2, 1.0, 1e-4)
    assert leak_of(bursts, 0.01 * np.roll(bursts, delay)) == pytest.approx(leak, rel=0.01)


def test_somewhat_more_after_a_delay_is_no_late_echo():
    bursts = np.arange(100) % 20 < 2
    assert leak_of(np.where(bursts, 1.0, 1e-4), np.where(np.roll(bursts, 3), 0.029, 0.01)) == pytest.approx(0.01)
    assert leak_of(np.where(bursts, 1.0, 1e-4), np.where(np.roll(bursts, 3), 0.031, 0.01)) == pytest.approx(0.031)


def test_a_file_is_heard_as_its_samples_are(diarizer: Diarizer, tmp_path: Path):
    talk = sides((0.0, 3.0), (3.0, 5.0))
    found = diarizer(write(tmp_path / "talk.wav", talk, RATE), channel="each")
    assert found.uri == "talk"
    assert [turn.speaker for turn in found] == [
        turn.speaker for turn in diarizer(talk, sample_rate=RATE, channel="each")
    ]


@given(st.integers(2, 4), st.integers(0, 2**31))
def test_the_order_of_the_channels_does_not_matter(count: int, seed: int):
    rng = np.random.default_rng(seed)
    power, spoken = rng.lognormal(0, 3, (60, count)), rng.random((60, count))
    order = rng.permutation(count)
    leak, moved = leaks(spoken, power, STEP_S), leaks(spoken[:, order], power[:, order], STEP_S)
    assert np.array_equal(leak[np.ix_(order, order)], moved)
    kept = own_speech(spoken, power, leak, STEP_S)
    assert np.array_equal(kept[:, order], own_speech(spoken[:, order], power[:, order], moved, STEP_S))
    assert ((kept == 0) | (kept == spoken)).all()


@given(st.floats(1e-4, 0.9), st.integers(0, 4), st.integers(0, 2**31))
def test_an_echo_is_nobody(leak: float, delay: int, seed: int):
    rng = np.random.default_rng(seed)
    one = np.where(np.arange(200) % 50 < 30, rng.uniform(0.5, 1.0, 200), 1e-9)
    power = np.stack([one, leak * np.pad(one, (delay, 0))[:200] + 1e-9], axis=1)
    spoken = (power > 1e-8).astype(float)
    assert not own_speech(spoken, power, leaks(spoken, power, STEP_S), STEP_S)[:, 1].any()


def test_channels_that_are_not_apart_are_refused(diarizer: Diarizer, tmp_path: Path):
    mono = write(tmp_path / "mono.wav", sides((0.0, 3.0)), RATE)
    with pytest.raises(InputError, match=r"mono\.wav has one channel"):
        diarizer(mono, channel="each")
    same = np.repeat(sides((0.0, 3.0)), 2, axis=1)
    with pytest.raises(InputError, match="channels 1 and 2 of the array have the same voices"):
        diarizer(same, sample_rate=RATE, channel="each")
    many = write(tmp_path / "many.wav", np.zeros((RATE, 65), np.float32), RATE)
    with pytest.raises(InputError, match=r"many\.wav has 65 channels, too many for one speaker each: the most are 64"):
        diarizer(many, channel="each")
    with pytest.warns(UserWarning, match=r"channels 1 and 2 of the array have cross-talk \(-10 dB\)"):
        diarizer(sides((0.0, 3.0), (3.0, 5.5), leak=0.32), sample_rate=RATE, channel="each")


def test_how_loud_one_channel_is_in_another_tells_if_they_are_apart(diarizer: Diarizer):
    assert len(diarizer(sides((0.0, 3.0), (3.0, 5.5), leak=0.22), sample_rate=RATE, channel="each").speakers) == 2
    with pytest.raises(InputError, match="channels 1 and 2 of the array have the same voices"):
        diarizer(sides((0.0, 3.0), (3.0, 5.5), leak=0.56), sample_rate=RATE, channel="each")


def test_one_recording_twice_once_softer_is_refused():
    """The softer one could be a leak of the louder one; most of the speech would be lost."""
    wave = read(DEMO)
    softer = np.stack([wave, 0.5 * wave], axis=1)
    with pytest.raises(InputError, match="the channels of the array have the same voices"):
        Diarizer.load()(softer, sample_rate=RATE, channel="each")


@pytest.mark.parametrize(("own_s", "told"), [(0.0, True), (0.08, True), (0.24, False)])
def test_a_channel_that_has_only_what_another_has_is_told_of(own_s: float, told: bool):
    talk = sides((0.0, 3.2), (4.0, 4.0 + own_s), leak=0.2)

    def hear(part: Heard) -> tuple[Probabilities, None, None]:
        voice = np.square(np.concatenate(list(part.blocks())).reshape(-1, RATE * 2 // 25)).mean(axis=1) > 1e-5
        return Probabilities(voice[:, None].astype(np.float32), STEP_S, part.seconds, None, "talk"), None, None

    with warnings.catch_warnings(record=True, action="always") as caught:
        by_channel(Heard(talk, RATE), hear)
    assert ["the speech in channel 2 of the array is cross-talk" in str(each.message) for each in caught] == [
        True
    ] * told


def test_silence_is_nobody(diarizer: Diarizer):
    with pytest.warns(UserWarning, match="no speech found in the array: it is silent") as caught:
        assert not diarizer(np.zeros((RATE, 2), np.float32), sample_rate=RATE, channel="each").turns
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("talk", "noise"),
    [
        (sides((0.0, 3.0), (3.0, 6.0), leak=0.03), 0.056),
        (sides((1.04, 1.2), (4.0, 4.16), leak=0.0), 3e-3),
        (sides((6.0, 6.0), (6.0, 6.0)), 0.056),
    ],
    ids=["noise", "little speech", "noise alone"],
)
def test_what_is_alike_in_two_channels_but_is_no_voice_does_not_matter(talk: np.ndarray, noise: float):
    talk = talk + np.float32(noise) * np.random.default_rng(1).standard_normal(talk.shape).astype(np.float32)
    voices = (np.square(talk.T.reshape(2, -1, RATE * 2 // 25)).mean(axis=2) > 0.007).T

    def hear(part: Heard) -> tuple[Probabilities, None, None]:
        wave = np.concatenate(list(part.blocks()))
        said = voices[:, int(np.array_equal(wave, talk[:, 1])), None].astype(np.float32)
        return Probabilities(said, STEP_S, part.seconds, None, "talk"), None, None

    found, names, _ = by_channel(Heard(talk, RATE), hear)
    assert names == {0: "channel_1", 1: "channel_2"}
    assert (found.data <= voices).all()
    assert (found.data.sum(axis=0) >= 0.8 * voices.sum(axis=0)).all()


def test_a_channel_is_as_loud_however_much_of_it_is_looked_at_at_once(monkeypatch: pytest.MonkeyPatch):
    wave = 0.3 + sides((0.0, 3.0), (3.0, 6.0))[:, 0]
    whole = _power(wave, 75, STEP_S)
    monkeypatch.setattr("sortformer.channels._AT_ONCE", 7)
    np.testing.assert_allclose(_power(wave, 75, STEP_S), whole, rtol=1e-3)


def test_no_copies_of_a_whole_channel_are_made():
    talk = np.tile(sides((0.0, 3.0), (3.0, 6.0)), (50, 1))
    said = np.ones((len(talk) // 1280, 1), np.float32)
    tracemalloc.start()
    try:
        by_channel(Heard(talk, RATE), lambda _: (Probabilities(said, STEP_S, 300.0, None, "talk"), None, None))
        assert tracemalloc.get_traced_memory()[1] < 2.5 * talk[:, 0].nbytes  # the previous channel is still in memory
    finally:
        tracemalloc.stop()


def test_what_is_of_one_channel_is_not_of_each(diarizer: Diarizer):
    with pytest.raises(InputError, match="channel must be a whole number, 1 or more, got 'each'"):
        diarizer.embeddings(sides((0.0, 3.0), (3.0, 6.0)), sample_rate=RATE, channel="each")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="channel must be a whole number, 1 or more, or 'each', got 'left'"):
        diarizer(sides((0.0, 3.0), (3.0, 6.0)), sample_rate=RATE, channel="left")  # pyright: ignore[reportArgumentType]


def test_a_pipe_is_refused(diarizer: Diarizer):
    reading, writing = os.pipe()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe, pytest.raises(InputError, match="a pipe can be read only once"):
        diarizer(pipe, channel="each")


def test_progress_goes_through_all_channels_and_may_cancel(diarizer: Diarizer):
    seen = list[tuple[str, float, float | None]]()

    def progress(stage: str, done: float, total: float | None) -> None:
        seen.append((stage, done, total))

    diarizer(sides((0.0, 3.0), (3.0, 5.0)), sample_rate=RATE, progress=progress, channel="each")
    read = [(done, total) for stage, done, total in seen if stage == "read"]
    assert read == sorted(read)
    assert read[-1] == (12.0, 12.0)
    with pytest.raises(Cancelled):
        diarizer(sides((0.0, 3.0), (3.0, 5.0)), sample_rate=RATE, progress=lambda *_: False, channel="each")


def test_the_comparison_of_channels_may_be_cancelled(diarizer: Diarizer):
    compared = list[tuple[float, float | None]]()

    def progress(stage: str, done: float, total: float | None) -> bool:
        compared.extend([(done, total)] if stage == "turns" else [])
        return (1, 3) not in compared

    talk = sides((0.0, 2.0), (2.0, 4.0), (4.0, 6.0), leak=0.03)
    with pytest.raises(Cancelled):
        diarizer(talk, sample_rate=RATE, progress=progress, channel="each")
    assert compared == [(0, 3), (1, 3)]

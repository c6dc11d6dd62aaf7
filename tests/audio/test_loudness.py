"""Loudness normalisation: a single factor per recording, not determined by clicks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.audio.loudness import UNHEARD, how_quiet, levelled, peak
from tests.strategies import spread

WAVE = np.random.default_rng(0).uniform(-1, 1, 32_000).astype(np.float32)


def level_of(*parts: np.ndarray) -> float:
    level = UNHEARD
    for part in parts:
        level = level.after(part)
    return level.value


def decibels_of(wave: np.ndarray) -> float:
    return 20 * np.log10(level_of(wave))


@given(decibels=st.floats(-50, 30))
def test_however_loud_a_recording_is_it_is_heard_alike(decibels: float):
    given = (WAVE * 10 ** (decibels / 20)).astype(np.float32)
    alike = levelled(given, level_of(given))
    assert alike.dtype == np.float32
    assert decibels_of(alike) == pytest.approx(-24, abs=0.2)
    np.testing.assert_allclose(alike, levelled(WAVE, level_of(WAVE)), rtol=0.03, atol=1e-6)


def test_louder_by_thirty_decibels_at_most():
    assert peak(levelled(WAVE * np.float32(1e-4), 1e-4)) == pytest.approx(31.6e-4, rel=0.01)


@pytest.mark.parametrize("at", [0, 10_000, 31_999])
@pytest.mark.parametrize("factor", [0.05, 0.001])
def test_knocks_do_not_set_the_level(at: int, factor: float):
    speech = np.tile(np.float32(factor) * WAVE, 5)
    knocked = speech.copy()
    for knock in range(4):
        knocked[at + 32_000 * knock] = 1.0
    assert decibels_of(knocked) == pytest.approx(decibels_of(speech), abs=0.2)


def test_what_does_not_sound_does_not_set_the_level():
    speech = 0.05 * WAVE
    assert decibels_of(speech + np.float32(0.5)) == pytest.approx(decibels_of(speech), abs=0.2)


def level_in_decibels(*pieces: tuple[int, float]) -> float:
    """That of so many pieces of 0.1 s, each of a loudness."""
    loudness = np.concatenate([np.full(count, decibels) for count, decibels in pieces])
    swing = np.tile(np.float32([1, -1]), 800)
    return decibels_of(np.repeat(10 ** (loudness / 20), 1600).astype(np.float32) * np.tile(swing, len(loudness)))


@pytest.mark.parametrize(("louder", "level"), [(4, -20), (6, -10)])
def test_the_level_is_what_95_pieces_of_100_do_not_exceed(louder: int, level: float):
    assert level_in_decibels((100 - louder, -20), (louder, -10)) == pytest.approx(level, abs=0.2)


@pytest.mark.parametrize(("words", "level"), [(5, -35), (6, -15)])
def test_six_pieces_are_a_word_to_which_the_level_keeps_at_15_db(words: int, level: float):
    assert level_in_decibels((200, -35), (words, 0)) == pytest.approx(level, abs=0.2)


@pytest.mark.parametrize(("softer", "level"), [(-34, -10), (-36, 0)])
def test_what_is_25_db_softer_is_silence_and_does_not_count(softer: float, level: float):
    assert level_in_decibels((90, -10), (10, 0), (200, softer)) == pytest.approx(level, abs=0.2)


def test_of_what_is_no_whole_piece_the_level_with_silence_is_its_peak():
    assert UNHEARD.after(np.float32([0.0, -0.1])).with_silence == pytest.approx(-20)
    assert UNHEARD.with_silence == -120


@pytest.mark.parametrize("seconds", [10, 1000])
@pytest.mark.parametrize("softer", [0, 0.01])
def test_how_long_it_is_silent_does_not_set_the_level(seconds: int, softer: float):
    speech = np.tile(WAVE, 10) * np.repeat(np.geomspace(0.03, 0.3, 20), 16_000).astype(np.float32)
    silence = np.float32(0.01 * softer) * np.tile(WAVE, seconds // 2)
    for parts in ([silence, speech], [speech, silence]):
        assert level_of(*parts) == level_of(speech)


def test_a_word_in_much_noise_is_not_raised_beyond_measure():
    sparse = 0.03 * np.tile(WAVE, 100)
    sparse[:16_000] = 0.3 * WAVE[:16_000]
    assert peak(levelled(sparse, level_of(sparse))) == pytest.approx(10 ** (-9 / 20), rel=0.02)


@given(cuts=st.lists(spread(0, 32_000), max_size=5).map(sorted))
def test_however_it_is_cut_it_is_as_loud(cuts: list[int]):
    assert level_of(*np.split(WAVE, cuts)) == level_of(WAVE)


@pytest.mark.parametrize("length", [0, 1, 1599, 1600])
def test_short_ones_have_a_level_too(length: int):
    wave = WAVE[:length]
    assert level_of(wave) == pytest.approx(peak(wave), rel=0.03)


def test_hours_take_no_more_room_than_seconds():
    level, hour = UNHEARD, np.tile(WAVE, 1800)
    for part in np.array_split(hour, 10):
        level = level.after(part)
    assert level.seconds == 3600
    assert level.peaks.counts.shape == UNHEARD.peaks.counts.shape
    assert len(level.begun) < 1600


def test_silence_stays_silence():
    silence = np.zeros(9, dtype=np.float32)
    np.testing.assert_array_equal(levelled(silence, level_of(silence)), silence)
    assert peak(np.zeros(0, dtype=np.float32)) == level_of() == 0


@pytest.mark.parametrize(
    ("highest", "news"),
    [
        (0.0, ": it is silent"),
        (2.0**-16, ": it is silent"),
        (2.0**-15, ": it is quiet, no sample exceeds -90 dBFS"),
        (0.001, ": it is quiet, no sample exceeds -60 dBFS"),
        (0.01, ""),
        (1.0, ""),
    ],
)
def test_where_nobody_is_heard_it_says_how_quiet_it_is(highest: float, news: str):
    assert how_quiet(highest) == news

"""All recordings are made alike loud by one factor, and a knock does not set it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.audio.loudness import Level, how_quiet, levelled, peak

WAVE = np.random.default_rng(0).uniform(-1, 1, 32_000).astype(np.float32)


def level_of(*parts: np.ndarray) -> float:
    level = Level()
    for part in parts:
        level.add(part)
    return level.value


@given(decibels=st.floats(-50, 30))
def test_however_loud_a_recording_is_it_is_heard_alike(decibels: float):
    given = (WAVE * 10 ** (decibels / 20)).astype(np.float32)
    alike = levelled(given, level_of(given))
    assert alike.dtype == np.float32
    assert level_of(alike) == pytest.approx(10 ** (-24 / 20), rel=0.001)
    np.testing.assert_allclose(alike, levelled(WAVE, level_of(WAVE)), atol=1e-5)


def test_louder_by_thirty_decibels_at_most():
    assert peak(levelled(WAVE * np.float32(1e-4), 1e-4)) == pytest.approx(31.6e-4, rel=0.01)


@pytest.mark.parametrize("at", [0, 10_000, 31_999])
def test_a_knock_moves_the_level_little(at: int):
    speech = np.tile(0.05 * WAVE, 3)
    knocked = speech.copy()
    knocked[at : at + 100] = 0.25
    assert level_of(knocked) == pytest.approx(level_of(speech), rel=0.01)
    knocked[at] = 1.0
    assert level_of(knocked) == pytest.approx(10 ** (-15 / 20))


def test_a_word_in_much_silence_is_not_raised_beyond_measure():
    sparse = 0.001 * np.tile(WAVE, 100)
    sparse[:16_000] = 0.3 * WAVE[:16_000]
    assert peak(levelled(sparse, level_of(sparse))) == pytest.approx(10 ** (-9 / 20), rel=0.01)


@given(cut=st.integers(1, 31_999))
def test_parts_at_whole_pieces_are_the_whole(cut: int):
    at = cut - cut % 1600
    assert level_of(WAVE[:at], WAVE[at:]) == level_of(WAVE)


@pytest.mark.parametrize("length", [0, 1, 1599, 1600, 1601])
def test_short_ones_have_a_level_too(length: int):
    wave = WAVE[:length]
    assert level_of(wave) == peak(wave)


def test_silence_stays_silence():
    silence = np.zeros(9, dtype=np.float32)
    np.testing.assert_array_equal(levelled(silence, level_of(silence)), silence)
    assert peak(np.zeros(0, dtype=np.float32)) == level_of() == 0


@pytest.mark.parametrize(
    ("highest", "news"),
    [
        (0.0, ": it is silent"),
        (2.0**-16, ": it is silent"),
        (0.001, ": it is quiet, no sample exceeds -60 dB of full scale"),
        (0.02, ""),
        (1.0, ""),
    ],
)
def test_where_nobody_is_heard_it_says_how_quiet_it_is(highest: float, news: str):
    assert how_quiet(highest) == news

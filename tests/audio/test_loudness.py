"""Quiet recordings are raised by one factor, whatever else stays as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.audio.loudness import how_quiet, peak, raised

WAVE = np.random.default_rng(0).uniform(-1, 1, 2000).astype(np.float32)


@given(highest=st.floats(0.1, 8.0))
def test_what_is_loud_enough_stays_bit_for_bit(highest: float):
    assert raised(WAVE, highest) is WAVE


@given(decibels=st.floats(-50, -20.1))
def test_what_is_quiet_reaches_a_tenth_of_full_scale(decibels: float):
    quiet = (WAVE / peak(WAVE) * 10 ** (decibels / 20)).astype(np.float32)
    louder = raised(quiet, peak(quiet))
    assert louder.dtype == np.float32
    assert peak(louder) == pytest.approx(0.1, rel=0.005)
    np.testing.assert_allclose(louder / peak(louder), WAVE / peak(WAVE), atol=1e-5)


def test_by_thirty_decibels_at_most():
    assert peak(raised(WAVE * np.float32(1e-4), 1e-4)) == pytest.approx(31.6e-4, rel=0.01)


def test_a_part_is_raised_by_what_its_recording_needs():
    np.testing.assert_allclose(raised(WAVE * np.float32(0.001), 0.05), WAVE * np.float32(0.002), rtol=1e-5)


def test_silence_stays_silence():
    silence = np.zeros(9, dtype=np.float32)
    np.testing.assert_array_equal(raised(silence, peak(silence)), silence)
    assert peak(np.zeros(0, dtype=np.float32)) == 0


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

"""A DC offset of the recorder is removed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from sortformer.audio.offset import centred
from tests.strategies import spread

WAVE = np.random.default_rng(0).uniform(-0.1, 0.1, 16_000).astype(np.float32)


@pytest.mark.parametrize("offset", [-0.3, 0.001, 0.5])
def test_an_offset_changes_nothing(offset: float):
    found, _ = centred(WAVE + np.float32(offset))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, centred(WAVE)[0], atol=2e-5)


def test_constant_samples_are_silence_from_the_first_one_on():
    assert np.abs(centred(np.full(16_000, 0.7, np.float32))[0]).max() < 1e-6


def test_it_is_what_scipy_makes_of_it():
    wave = np.tile(WAVE, 3) + np.float32(0.2)
    expected, _ = lfilter([1, -1], [1, -0.9995], wave.astype(np.float64), zi=[-np.float64(wave[0])])
    np.testing.assert_allclose(centred(wave)[0], expected, atol=1e-6)


@pytest.mark.parametrize(("hertz", "kept"), [(80, 0.97), (300, 0.998)])
def test_speech_stays(hertz: float, kept: float):
    tone = np.sin(2 * np.pi * hertz * np.arange(16_000) / 16_000).astype(np.float32)
    assert kept < np.square(centred(tone)[0][8000:]).mean() / np.square(tone[8000:]).mean() < 1.01


@given(cuts=st.lists(spread(0, 16_000), max_size=5).map(sorted))
def test_it_is_the_same_in_any_cut(cuts: list[int]):
    state, parts = None, []
    for part in np.split(WAVE + np.float32(0.1), cuts):
        found, state = centred(part, state)
        parts.append(found)
    np.testing.assert_allclose(np.concatenate(parts), centred(WAVE + np.float32(0.1))[0], rtol=1e-6)

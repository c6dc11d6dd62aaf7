"""Formants are shifted, pitch is kept."""

import numpy as np
import pytest
import torch
from scipy.signal import firwin, lfilter

from sortformer.simulate.formants import _envelope, with_formants

RATE = 16_000


def vowel(pitch_hz: float, formants_hz: tuple[float, ...]) -> np.ndarray:
    """A second of pulses through resonances of 100 Hz."""
    wave = np.zeros(RATE)
    wave[np.arange(0, RATE, RATE / pitch_hz).astype(int)] = 1.0
    radius = np.exp(-np.pi * 100 / RATE)
    for formant in formants_hz:
        wave = lfilter([1.0], [1.0, -2 * radius * np.cos(2 * np.pi * formant / RATE), radius**2], wave)
    return (0.3 * wave / np.abs(wave).max()).astype(np.float32)


def level_db(wave: np.ndarray, low_hz: float, high_hz: float) -> float:
    power = np.abs(np.fft.rfft(wave)) ** 2
    return float(10 * np.log10(power[round(low_hz * len(wave) / RATE) : round(high_hz * len(wave) / RATE)].sum()))


@pytest.mark.parametrize(("samples", "kept"), [(0, 1.0), (1, 1.0), (31, 1.0), (32, 0.0), (200, 0.0)])
def test_the_envelope_has_the_ripples_of_less_than_two_milliseconds_whatever_the_phases(samples: int, kept: float):
    ripple = torch.cos(2 * torch.pi * samples * torch.arange(257) / 512)[None]
    phases = torch.randn(1, 257, generator=torch.Generator().manual_seed(0))
    phases[:, [0, -1]] = 0.0  # of a real signal
    found = _envelope(torch.polar(ripple.exp(), phases))
    torch.testing.assert_close(found, kept * ripple, atol=1e-4, rtol=0)


@pytest.mark.parametrize("factor", [0.85, 1.15])
@pytest.mark.parametrize("pitch_hz", [100.0, 200.0])
def test_the_envelope_is_that_of_a_throat_with_such_formants(factor: float, pitch_hz: float):
    formants = (700.0, 1900.0, 3100.0)
    moved = with_formants(vowel(pitch_hz, formants), factor)
    wanted = vowel(pitch_hz, tuple(factor * formant for formant in formants))
    bands = [(center - 200, center + 200) for center in range(400, 4000, 200)]

    def distance(wave: np.ndarray) -> float:
        gaps = np.array([level_db(wave, *band) - level_db(wanted, *band) for band in bands])
        return float(np.std(gaps))

    assert distance(moved) < 0.5 * distance(vowel(pitch_hz, formants))


@pytest.mark.parametrize("factor", [0.85, 1.0, 1.15])
def test_the_pitch_stays(factor: float):
    wave = vowel(125.0, (700.0, 1900.0))
    moved = with_formants(wave, factor)
    power = np.abs(np.fft.rfft(moved)) ** 2
    on_harmonics = power[np.arange(125, 4000, 125)[:, None] + np.arange(-3, 4)].sum()
    assert on_harmonics > 0.98 * power[60:4000].sum()


def test_the_same_throat_sounds_the_same():
    noise = 0.1 * np.random.default_rng(0).standard_normal(RATE).astype(np.float32)
    np.testing.assert_allclose(with_formants(noise, 1.0), noise, atol=1e-6)


def test_a_band_without_speech_is_not_amplified_to_noise():
    """Of telephone speech, which ends at 3.4 kHz, higher formants raise the hiss above by 20 dB at most."""
    rng = np.random.default_rng(0)
    wave = lfilter(firwin(513, 3400, fs=RATE), 1.0, 0.1 * rng.standard_normal(RATE))
    wave = (wave + 1e-5 * rng.standard_normal(RATE)).astype(np.float32)
    moved = with_formants(wave, 1.3)
    assert level_db(moved, 3600, 4200) < level_db(wave, 3600, 4200) + 21


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 1_000_001])
def test_any_length_keeps_its_length_and_is_finite(length: int):
    wave = np.zeros(length, np.float32)
    wave[: length // 2] = 0.1
    moved = with_formants(wave, 1.1)
    assert moved.shape == wave.shape
    assert moved.dtype == np.float32
    assert np.isfinite(moved).all()

"""Muffled or thin recordings are brought to a tilt that the models know; others are unchanged."""

import numpy as np
import pytest
import torch

from sortformer import Diarizer, audio
from sortformer.audio.loudness import alike_loud
from sortformer.config.model import FeatureConfig
from sortformer.errors import ConfigError
from sortformer.features import FIXED_STD, LogMel
from sortformer.formats import rttm
from sortformer.metrics.der import der
from sortformer.tilt import equaliser

MEETING = audio.read("demos/meeting.wav")
AS_IT_IS, EQUALISED = (LogMel(FeatureConfig(normalize="fixed", tilt_range=each)) for each in (None, (-9.0, -5.0)))
HZ = torch.from_numpy(np.geomspace(60, 7_800, 80)).float()


def tilted(wave: np.ndarray, decibels: float) -> np.ndarray:
    """Return samples (N,) with an additional slope per octave (falling below zero)."""
    hz = np.fft.rfftfreq(len(wave), 1 / 16_000)
    return np.fft.irfft(np.fft.rfft(wave) * (np.maximum(hz, 50) / 1000) ** (decibels / 6.02), len(wave)).astype(
        np.float32
    )


def heard(log_mel: LogMel, wave: np.ndarray) -> np.ndarray:
    return log_mel(torch.from_numpy(alike_loud(wave))[None])[0][0].numpy()


def spectrum(decibels: float) -> torch.Tensor:
    """Return a power spectrum (1, M), as of an hour of speech, with this slope per octave."""
    power = 10 ** (decibels * HZ.log2() / 10)[None]
    return 2.5 * 360_000 * power / torch.trapezoid(power, HZ)


def slope(power: torch.Tensor) -> float:
    return float(np.polyfit(np.log2(HZ.numpy()), 10 * np.log10(power[0].numpy()), 1)[0])


@pytest.mark.parametrize(("as_it_is", "now"), [(-15, -9), (-9.5, -9), (-7, -7), (-4.5, -5), (2, -5)])
def test_what_lies_beyond_comes_to_the_nearer_end(as_it_is: float, now: float):
    power = spectrum(as_it_is)
    assert slope(power * equaliser(power, HZ, (-9.0, -5.0))) == pytest.approx(now, abs=0.05)


def test_what_lies_within_is_the_same_to_the_bit():
    assert (equaliser(spectrum(-7), HZ, (-9.0, -5.0)) == 1).all()
    np.testing.assert_array_equal(heard(EQUALISED, MEETING), heard(AS_IT_IS, MEETING))


def test_what_is_below_speech_and_above_telephones_does_not_count():
    power = spectrum(-7)
    power[:, HZ < 240] *= 1e3
    power[:, HZ > 4_100] *= 1e-3
    assert (equaliser(power, HZ, (-9.0, -5.0)) == 1).all()


def test_bands_that_lie_unevenly_count_by_their_octaves():
    hz = torch.linspace(100, 7_900, 400)
    octaves = (hz / 1_000).log2()
    power = 1e6 * 10 ** (torch.where(hz < 1_000, -4, -12) * octaves / 10)
    factors = equaliser(power[None], hz, (-8.0, -8.0))[0]
    assert factors[-1] / factors[0] == pytest.approx(1, rel=0.2)  # 4 dB an octave below 1 kHz, and 12 above


def test_it_stays_as_loud():
    power = torch.cat([spectrum(-14), spectrum(0)])
    found = power * equaliser(power, HZ, (-9.0, -5.0))
    np.testing.assert_allclose(torch.trapezoid(found, HZ), torch.trapezoid(power, HZ), rtol=1e-4)


def test_of_little_speech_next_to_nothing_is_known():
    power = spectrum(-15)
    found = [slope(share * power * equaliser(share * power, HZ, (-9.0, -5.0))) for share in (1e-5, 1e-3, 1)]
    assert found[0] == pytest.approx(-15, abs=0.1)  # unchanged
    assert found[0] < found[1] < found[2]
    assert found[1] == pytest.approx(-13.2, abs=0.1)  # after about four seconds the estimate is -11


def test_silence_is_silence():
    assert equaliser(torch.zeros(2, 80), HZ, (-9.0, -5.0)).isfinite().all()
    np.testing.assert_array_equal(
        heard(EQUALISED, np.zeros(16_000, np.float32)), heard(AS_IT_IS, np.zeros(16_000, np.float32))
    )


@pytest.mark.parametrize("hz", [50, 400, 3_000, 7_900])
@pytest.mark.parametrize("amplitude", [1e-4, 1.0])
def test_whatever_sounds_no_band_changes_by_more_than_40_db(hz: float, amplitude: float):
    """A tone has no tilt, but a fitted slope of a hundred dB and more."""
    tone = (amplitude * np.sin(2 * np.pi * hz * np.arange(160_000) / 16_000)).astype(np.float32)
    found = heard(EQUALISED, tone)
    assert np.isfinite(found).all()
    assert np.abs(found - heard(AS_IT_IS, tone)).max() * FIXED_STD < np.log(1.1e4)


@pytest.mark.parametrize(("some", "more"), [(-5, -9), (5, 8)])
def test_how_much_cloth_there_is_over_a_microphone_changes_little(some: float, more: float):
    wave = np.tile(MEETING, 4)  # two minutes
    one, other = tilted(wave, some), tilted(wave, more)
    before, after = (np.abs(heard(each, one) - heard(each, other)).mean() for each in (AS_IT_IS, EQUALISED))
    assert after < before / 2.5


def test_a_meeting_under_cloth_is_heard_as_without():
    """Uncorrected, 8.9 s of its speech are missed, against 5.2 s without cloth."""
    reference = rttm.read("demos/meeting.rttm")["meeting"]
    found = Diarizer.load()(tilted(MEETING, -6), sample_rate=16_000).turns
    assert der(reference, found, [(0.0, 30.0)]).miss < 6.0


def test_neighbours_change_nothing():
    waves = [alike_loud(tilted(MEETING[:n], -6)) for n in (80_000, 60_000)]
    batch = torch.zeros(2, 80_000)
    for row, wave in enumerate(waves):
        batch[row, : len(wave)] = torch.from_numpy(wave)
    found, frames = EQUALISED(batch, torch.tensor([80_000, 60_000]))
    for row, wave in enumerate(waves):
        expected = EQUALISED(torch.from_numpy(wave)[None])[0]
        np.testing.assert_allclose(found[row, : frames[row]], expected[0], atol=1e-4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tilt_range": (-5.0, -9.0)}, r"the lower one first, got \(-5.0, -9.0\)"),
        ({"tilt_range": (-9.0,)}, "two numbers from -60 to 60 dB per octave, the lower one first"),
        ({"tilt_range": (-9.0, 1e30)}, "two numbers from -60 to 60"),
        ({"tilt_range": (-9.0, float("inf"))}, "two numbers from -60 to 60"),
        ({"tilt_range": (-9.0, -5.0), "normalize": "none"}, "tilt_range needs normalize 'fixed'"),
        ({"tilt_range": (-9.0, -5.0), "num_mels": 4}, "8 mel bands or more"),
    ],
)
def test_a_range_that_is_none_is_refused(values: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        FeatureConfig(**{"normalize": "fixed", **values})

"""Sounds that are not speech and do not last: breaths on a microphone, clicks, knocks, rustling."""

import numpy as np

from sortformer.grid import SAMPLE_RATE

__all__ = ["bursts"]

_DURATION_S = (0.004, 1.2)
_CENTRE_HZ = (50.0, 5000.0)
_WIDTH_OCTAVES = (0.5, 5.0)
_LEVEL_SPREAD_DB = 6.0


def bursts(rng: np.random.Generator, num_samples: int, rate_hz: float) -> np.ndarray:
    """Return (num_samples,) float32 with bursts of noise, ``rate_hz`` a second on average.

    Each has its own band, length and envelope, and unit power while it lasts, give or take some dB.
    """
    sound = np.zeros(num_samples, dtype=np.float32)
    for _ in range(rng.poisson(rate_hz * num_samples / SAMPLE_RATE)):
        burst = _burst(rng) * 10 ** (_LEVEL_SPREAD_DB * rng.normal() / 20)
        start = rng.integers(num_samples)
        piece = sound[start : start + len(burst)]
        piece += burst[: len(piece)]
    return sound


def _burst(rng: np.random.Generator) -> np.ndarray:
    count = round(_log_uniform(rng, _DURATION_S) * SAMPLE_RATE)
    spectrum = np.fft.rfft(rng.normal(size=count))
    octaves = np.log2(np.maximum(np.fft.rfftfreq(count, 1 / SAMPLE_RATE), 20.0) / _log_uniform(rng, _CENTRE_HZ))
    spectrum *= np.exp2(-np.maximum(np.abs(octaves) - rng.uniform(*_WIDTH_OCTAVES) / 2, 0) * 2)  # 12 dB an octave
    noise = np.fft.irfft(spectrum, count)
    position = np.linspace(0, 1, count)
    rise = rng.uniform(0.02, 0.6)
    envelope = np.where(position < rise, position / rise, (1 - position) / (1 - rise)) ** rng.uniform(0.5, 2)
    shaped = noise * envelope
    return (shaped / max(1e-9, np.sqrt(np.mean(shaped**2)))).astype(np.float32)


def _log_uniform(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    return float(np.exp(rng.uniform(*np.log(bounds))))

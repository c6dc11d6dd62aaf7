"""Short sounds that are not speech: breaths, laughter, puffs on a microphone, clicks, knocks, rustling."""

from collections.abc import Sequence

import numpy as np

from sortformer.grid import SAMPLE_RATE
from sortformer.simulate.music import music
from sortformer.simulate.pauses import Pauses
from sortformer.simulate.ranges import log_uniform

__all__ = ["KINDS", "LEVEL_SPREAD_DB", "burst_of_kind", "bursts", "drawn_kind"]

LEVEL_SPREAD_DB = 6.0  # between bursts of one recording
KINDS = 7  # clatter, rustling, breath, laughter, music, pauses and, last, all others

_DURATION_S = (0.004, 1.2)
_CENTRE_HZ = (50.0, 5000.0)
_WIDTH_OCTAVES = (0.5, 5.0)
_PUFF_SHARE = 0.4
_PUFF_DURATION_S = (0.08, 1.5)
_PUFF_CORNER_HZ = (30.0, 250.0)
_PUFF_OCTAVE_DB = (9.0, 24.0)
_PUFF_GAIN_DB = (0.0, 20.0)  # air that strikes a membrane is louder than any voice
_CLATTER_DURATION_S = (0.002, 0.08)
_CLATTER_COUNT = (2, 60)
_CLATTER_GAP_S = (0.04, 0.6)
_CLATTER_SPREAD_DB = 5.0
_RUSTLE_DURATION_S = (0.5, 10.0)
_RUSTLE_BANDS = 3
_RUSTLE_FLUTTER_HZ = (2.0, 25.0)  # as fast as syllables, and faster
_RUSTLE_FLUTTER_DB = (3.0, 10.0)
_BREATH_DURATION_S = (0.2, 2.0)
_FORMANTS_HZ = ((250.0, 900.0), (800.0, 2300.0), (1900.0, 3400.0), (3200.0, 4800.0))
_FORMANT_WIDTH_HZ = (80.0, 500.0)
_BREATH_OCTAVE_DB = (0.0, 9.0)
_LAUGHTER_COUNT = (2, 14)
_LAUGHTER_HZ = (3.5, 6.5)  # syllables per second
_LAUGHTER_SOUND = (0.4, 0.8)  # share of each syllable that is not pause
_LAUGHTER_FALL_DB = (0.0, 2.0)  # from one syllable to the next
_LAUGHTER_PITCH_HZ = (120.0, 600.0)
_LAUGHTER_VOICED = 0.7  # of all laughter; the rest is breath alone
_NO_SHARES = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def bursts(
    rng: np.random.Generator,
    num_samples: int,
    rate_hz: float,
    shares: Sequence[float] = _NO_SHARES,
    pauses: Pauses | None = None,
) -> np.ndarray:
    """Return (num_samples,) float32 with bursts of noise, ``rate_hz`` per second on average.

    Each has its own band, length and envelope, and unit power while it lasts, give or take some dB; puffs of air, which
    have almost no energy above a few hundred hertz, are up to 20 dB louder.

    Args:
        shares: the shares of clatter, rustling, breath, laughter, music and pauses among the bursts. Clatter is a train
            of short bursts of one kind, which counts as one; rustling lasts for seconds and fluctuates as fast as
            speech; breath has the resonances of a mouth; laughter is breath in syllables, mostly voiced; music is notes
            and ringing; pauses are the sounds between phrases in recordings of voices.
        pauses: the source of pauses; if it is None or empty, puffs and knocks replace them.
    """
    sound = np.zeros(num_samples, dtype=np.float32)
    for _ in range(rng.poisson(rate_hz * num_samples / SAMPLE_RATE)):
        burst = burst_of_kind(rng, drawn_kind(rng, shares), pauses) * 10 ** (LEVEL_SPREAD_DB * rng.normal() / 20)
        start = rng.integers(num_samples)
        piece = sound[start : start + len(burst)]
        piece += burst[: len(piece)]
    return sound


def drawn_kind(rng: np.random.Generator, shares: Sequence[float] | np.ndarray) -> int:
    """Draw a kind of burst, from 0 to ``KINDS`` - 1; ``shares`` as in ``bursts``."""
    limits = np.cumsum(shares)
    # Drawn only if enabled: otherwise the result of a seed would change.
    return int(np.searchsorted(limits, rng.random(), side="right")) if limits[-1] else len(limits)


def burst_of_kind(rng: np.random.Generator, kind: int, pauses: Pauses | None = None) -> np.ndarray:
    """Return one burst (n,), float32, of a kind from 0 to ``KINDS`` - 1."""
    makers = (_clatter, _rustle, _breath, _laughter, _music)
    if kind < len(makers):
        return makers[kind](rng)
    if kind == len(makers) and pauses:
        return _of_unit_power(pauses.draw(rng))
    return _puff(rng) if rng.random() < _PUFF_SHARE else _knock(rng, _DURATION_S)


def _knock(rng: np.random.Generator, duration_s: tuple[float, float]) -> np.ndarray:
    count, hertz = _length(rng, duration_s)
    return _burst(rng, count, _band(rng, hertz))


def _puff(rng: np.random.Generator) -> np.ndarray:
    count, hertz = _length(rng, _PUFF_DURATION_S)
    return _burst(rng, count, _air(rng, hertz), _PUFF_GAIN_DB)


def _clatter(rng: np.random.Generator) -> np.ndarray:
    """Return one short burst repeated at random levels, with gaps spread around a drawn one."""
    knock = _knock(rng, _CLATTER_DURATION_S)
    gaps = log_uniform(rng, _CLATTER_GAP_S) * rng.lognormal(0.0, 0.4, size=round(log_uniform(rng, _CLATTER_COUNT)))
    starts = np.cumsum(np.round(gaps * SAMPLE_RATE).astype(np.int64))
    train = np.zeros(int(starts[-1]) + len(knock), dtype=np.float32)
    for start in starts:
        train[start : start + len(knock)] += knock * 10 ** (_CLATTER_SPREAD_DB * rng.normal() / 20)
    return train


def _rustle(rng: np.random.Generator) -> np.ndarray:
    """Return seconds of noise in a few bands of fluctuating level: clothes, paper, a hand on the microphone."""
    count, hertz = _length(rng, _RUSTLE_DURATION_S)
    sound = np.zeros(count)
    for _ in range(1 + rng.integers(_RUSTLE_BANDS)):
        spectrum = _air(rng, hertz) if rng.random() < _PUFF_SHARE else _band(rng, hertz)
        flutter = log_uniform(rng, _RUSTLE_FLUTTER_HZ) * 2 / SAMPLE_RATE
        knots = rng.normal(size=2 + int(count * flutter))
        level_db = rng.uniform(*_RUSTLE_FLUTTER_DB) * np.interp(
            np.arange(count) * flutter, np.arange(len(knots)), knots
        )
        sound += _burst(rng, count, spectrum) * 10 ** ((level_db + LEVEL_SPREAD_DB * rng.normal()) / 20)
    return _of_unit_power(sound)


def _breath(rng: np.random.Generator) -> np.ndarray:
    """Return a breath: unvoiced noise with formants, as in whispering."""
    count, hertz = _length(rng, _BREATH_DURATION_S)
    return _burst(rng, count, _mouth(rng, hertz))


def _laughter(rng: np.random.Generator) -> np.ndarray:
    """Return one vowel repeated, breathier than in speech and mostly voiced.

    About five syllables a second: Bickley and Hunnicutt, "Acoustic analysis of laughter" (ICSLP 1992).
    """
    period = SAMPLE_RATE / rng.uniform(*_LAUGHTER_HZ)
    gaps = period * rng.lognormal(0.0, 0.1, size=round(log_uniform(rng, _LAUGHTER_COUNT)))
    syllable, count = np.cumsum(gaps) - gaps[0], int(gaps.sum()) + 1
    number = np.searchsorted(syllable, np.arange(count), side="right") - 1
    position = (np.arange(count) - syllable[number]) / (gaps[number] * rng.uniform(*_LAUGHTER_SOUND))
    fall_db = rng.uniform(*_LAUGHTER_FALL_DB) * np.arange(len(gaps)) + 2.0 * rng.normal(size=len(gaps))
    envelope = np.where(position < 1, np.sin(np.pi * np.minimum(position, 1)), 0.0) * 10 ** (-fall_db[number] / 20)
    pitch = log_uniform(rng, _LAUGHTER_PITCH_HZ) * rng.lognormal(0.0, 0.1, size=len(gaps))[number]
    pulses = np.diff(np.floor(np.cumsum(pitch) / SAMPLE_RATE), prepend=0.0) * np.sqrt(SAMPLE_RATE / pitch)
    voiced = rng.uniform(0.3, 1.0) if rng.random() < _LAUGHTER_VOICED else 0.0
    source = (voiced * pulses + (1.0 - voiced) * rng.normal(size=count)) * envelope
    spectrum = np.fft.rfft(source) * 10 ** (_mouth(rng, _bins(count)) / 20)
    return _of_unit_power(np.fft.irfft(spectrum, count))


def _music(rng: np.random.Generator) -> np.ndarray:
    return _of_unit_power(music(rng))


def _mouth(rng: np.random.Generator, hertz: np.ndarray) -> np.ndarray:
    """Return the frequency response of an open mouth, in dB."""
    power = np.full(len(hertz), 10 ** rng.uniform(-3.0, -1.0))
    for bounds in _FORMANTS_HZ:
        width = log_uniform(rng, _FORMANT_WIDTH_HZ)
        power += 10 ** rng.normal(0.0, 0.5) / (1 + ((hertz - rng.uniform(*bounds)) / width) ** 2)
    tilt_db = -rng.uniform(*_BREATH_OCTAVE_DB) * np.log2(np.maximum(hertz, 300.0) / 1000.0)
    return 10 * np.log10(power) + tilt_db


def _length(rng: np.random.Generator, duration_s: tuple[float, float]) -> tuple[int, np.ndarray]:
    count = round(log_uniform(rng, duration_s) * SAMPLE_RATE)
    return count, _bins(count)


def _bins(count: int) -> np.ndarray:
    return np.maximum(np.fft.rfftfreq(count, 1 / SAMPLE_RATE), 20.0)


def _burst(
    rng: np.random.Generator, count: int, decibels: np.ndarray, gain_db: tuple[float, float] | None = None
) -> np.ndarray:
    noise = np.fft.irfft(np.fft.rfft(rng.normal(size=count)) * 10 ** (decibels / 20), count)
    position = np.linspace(0, 1, count)
    rise = rng.uniform(0.02, 0.6)
    envelope = np.where(position < rise, position / rise, (1 - position) / (1 - rise)) ** rng.uniform(0.5, 2)
    shaped = noise * envelope
    gain = 10 ** (rng.uniform(*gain_db) / 20) if gain_db else 1.0
    return _of_unit_power(shaped, gain)


def _of_unit_power(sound: np.ndarray, gain: float = 1.0) -> np.ndarray:
    return (sound * (gain / max(1e-9, np.sqrt(np.mean(sound**2))))).astype(np.float32)


def _band(rng: np.random.Generator, hertz: np.ndarray) -> np.ndarray:
    """Return the spectrum, in dB, of noise in a random band, outside of which it falls by 12 dB per octave."""
    octaves = np.log2(hertz / log_uniform(rng, _CENTRE_HZ))
    return -12.0 * np.maximum(np.abs(octaves) - rng.uniform(*_WIDTH_OCTAVES) / 2, 0)


def _air(rng: np.random.Generator, hertz: np.ndarray) -> np.ndarray:
    """Return the spectrum, in dB, of air on a microphone: low frequencies only."""
    return -rng.uniform(*_PUFF_OCTAVE_DB) * np.maximum(np.log2(hertz / log_uniform(rng, _PUFF_CORNER_HZ)), 0)

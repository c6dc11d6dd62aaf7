"""Sounds with pitch that are not speech: music, ringing, beeps."""

import numpy as np

from sortformer.grid import SAMPLE_RATE
from sortformer.simulate.ranges import log_uniform

__all__ = ["music"]

_DURATION_S = (0.2, 20.0)
_PARTS = 3
_LOWEST_HZ = (60.0, 1500.0)
_PITCHES = 8  # at most, in a part
_OCTAVES = 2.0  # that they span
_BEAT_S = (0.06, 0.8)
_LENGTHS = (1, 1, 1, 2, 2, 4)  # beats
_REST = 0.4  # share of the notes, at most
_ATTACK_S = (0.003, 0.1)
_RELEASE_S = 0.01
_DECAY_DB_S = (1.0, 120.0)
_VIBRATO = 0.01
_VIBRATO_HZ = (3.0, 8.0)
_OCTAVE_DB = (3.0, 18.0)  # fall of the overtones per octave
_OVERTONE_DB = 6.0  # standard deviation around it
_HIGHEST_HZ = 7500.0
_TABLE = 2048  # samples of a period


def music(rng: np.random.Generator) -> np.ndarray:
    """Return up to 20 s of one to three parts, (n,) at 16 kHz, of any level.

    A part repeats a few pitches in one timbre and rhythm; with a single pitch it is a ringing telephone, and without
    overtones an alarm.
    """
    count = round(log_uniform(rng, _DURATION_S) * SAMPLE_RATE)
    beat = log_uniform(rng, _BEAT_S)
    return sum((_part(rng, count, beat) for _ in range(1 + rng.integers(_PARTS))), np.zeros(count))


def _part(rng: np.random.Generator, count: int, beat_s: float) -> np.ndarray:
    time = np.arange(count) / SAMPLE_RATE
    ends = np.cumsum(rng.choice(_LENGTHS, size=2 + int(time[-1] / beat_s)) * beat_s).clip(max=count / SAMPLE_RATE)
    note = np.searchsorted(ends, time, side="right")
    since, left = time - np.append(0.0, ends)[note], ends[note] - time
    semitones = np.round(rng.uniform(0, 12 * _OCTAVES, size=1 + rng.integers(_PITCHES)))
    pitch = log_uniform(rng, _LOWEST_HZ) * 2 ** (rng.choice(semitones, size=len(ends)) / 12)
    loudness = 10 ** (rng.normal(0.0, 2.0, size=len(ends)) / 20) * (rng.random(len(ends)) >= rng.uniform(0, _REST))
    vibrato = rng.uniform(0, _VIBRATO) * np.sin(2 * np.pi * rng.uniform(*_VIBRATO_HZ) * time)
    phase = np.cumsum(pitch[note] * (1 + vibrato)) / SAMPLE_RATE
    decay = log_uniform(rng, _DECAY_DB_S) / 20
    envelope = (
        np.minimum(since / rng.uniform(*_ATTACK_S), 1) * np.minimum(left / _RELEASE_S, 1) * 10 ** (-decay * since)
    )
    wave = _period(rng, int(_HIGHEST_HZ / pitch.max()))[(phase * _TABLE).astype(np.int64) % _TABLE]
    return wave * envelope * loudness[note]


def _period(rng: np.random.Generator, overtones: int) -> np.ndarray:
    """Return one period of a random timbre, of unit power."""
    number = np.arange(1, 1 + max(1, overtones if rng.random() < 0.8 else 1))
    level_db = -rng.uniform(*_OCTAVE_DB) * np.log2(number) + _OVERTONE_DB * rng.normal(size=len(number))
    spectrum = np.zeros(_TABLE // 2 + 1, dtype=complex)
    spectrum[number] = 10 ** (level_db / 20) * np.exp(2j * np.pi * rng.random(len(number)))
    period = np.fft.irfft(spectrum, _TABLE)
    return period / np.sqrt(np.mean(period**2))

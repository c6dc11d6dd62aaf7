"""Music: a few pitches in the audible band, without a click at the end."""

import numpy as np
import pytest

from sortformer.simulate.bursts import bursts
from sortformer.simulate.music import music

RATE = 16_000
SHARES = np.eye(6)
BREATH, MUSIC = SHARES[2].tolist(), SHARES[4].tolist()


@pytest.fixture(scope="module")
def pieces() -> list[np.ndarray]:
    return [music(np.random.default_rng(seed)) for seed in range(80)]


def test_lengths_and_levels(pieces: list[np.ndarray]):
    lengths = [len(piece) / RATE for piece in pieces]
    assert min(lengths) >= 0.2
    assert max(lengths) <= 20
    assert max(lengths) > 5 > 1 > min(lengths)
    assert all(np.isfinite(piece).all() and np.abs(piece).max() < 20 for piece in pieces)


def test_the_same_seed_gives_the_same_piece(pieces: list[np.ndarray]):
    assert np.array_equal(music(np.random.default_rng(7)), pieces[7])


def test_its_spectrum_has_lines_and_that_of_breath_has_none():
    """Of half-second spectra, the share of the power in the strongest fiftieth of the bins."""
    shares = [
        np.median([_share_in_lines(sound) for seed in range(40) if (sound := _sound(seed, kind)).any()])
        for kind in (MUSIC, BREATH)
    ]
    assert shares[0] > 0.85
    assert shares[1] < 0.6


def test_it_stays_within_its_band(pieces: list[np.ndarray]):
    for piece in pieces:
        power = np.abs(np.fft.rfft(piece * np.hanning(len(piece)))) ** 2
        hertz = np.fft.rfftfreq(len(piece), 1 / RATE)
        assert power[(hertz < 40) | (hertz > 7800)].sum() <= 0.05 * power.sum()
        assert power[hertz > 7650].sum() <= 1e-3 * power.sum(), "overtones end below"


def test_it_has_rests(pieces: list[np.ndarray]):
    rest = np.mean(np.concatenate(pieces) == 0)
    assert 0.03 < rest < 0.2  # up to 40% of the notes of each part


def test_some_notes_ring_and_some_are_dampened(pieces: list[np.ndarray]):
    """The share of the steps of 20 ms with a note that are 40 dB below the loudest."""
    steps = [np.square(piece[: len(piece) // 320 * 320].reshape(-1, 320)).mean(axis=1) for piece in pieces]
    faded = np.concatenate([power[power > 0] < 1e-4 * power.max() for power in steps])
    assert 0.01 < np.mean(faded) < 0.1


def test_lower_overtones_are_louder(pieces: list[np.ndarray]):
    hertz = [np.fft.rfftfreq(len(piece), 1 / RATE) for piece in pieces]
    powers = [np.abs(np.fft.rfft(piece)) ** 2 for piece in pieces]
    centroids = [(f * power).sum() / power.sum() for f, power in zip(hertz, powers, strict=True) if power.any()]
    assert np.median(centroids) < 2000


def test_a_few_pitches_recur(pieces: list[np.ndarray]):
    """The share of different semitones among the strongest frequencies of eighths of a second."""
    shares = []
    for piece in pieces:
        frames = piece[: len(piece) // 2000 * 2000].reshape(-1, 2000)
        power = np.abs(np.fft.rfft(frames * np.hanning(2000), 8000, axis=1))[:, 1:] ** 2
        strongest = power[power.any(axis=1)].argmax(axis=1)
        if len(strongest) >= 16:
            shares.append(len(np.unique(np.round(12 * np.log2(1 + strongest)))) / len(strongest))
    assert len(shares) > 30
    assert np.median(shares) < 0.2


def test_notes_begin_and_end_softly(pieces: list[np.ndarray]):
    for piece in pieces:
        loudest = max(1e-9, np.abs(piece).max())
        assert abs(piece[0]) < 0.1 * loudest
        assert abs(piece[-1]) < 0.1 * loudest


def _sound(seed: int, kind: list[float]) -> np.ndarray:
    return bursts(np.random.default_rng(seed), 20 * RATE, 0.05, kind)


def _share_in_lines(sound: np.ndarray) -> float:
    half = RATE // 2
    frames = sound[: len(sound) // half * half].reshape(-1, half).astype(float)
    power = np.sort(np.abs(np.fft.rfft(frames * np.hanning(half), axis=1)) ** 2, axis=1)
    loud = power[power.sum(axis=1) > 0.1 * power.sum(axis=1).max()]
    return float(np.median(loud[:, -loud.shape[1] // 50 :].sum(axis=1) / loud.sum(axis=1)))

"""Bursts: as many as requested, short, of every spectrum, and reproducible."""

from functools import cache

import numpy as np
import pytest

from sortformer.simulate.bursts import KINDS, LEVEL_SPREAD_DB, _air, _band, burst_of_kind, bursts, drawn_kind

RATE = 16_000
CLATTER, RUSTLE, BREATH, LAUGHTER, MUSIC = map(tuple, np.eye(5, 6).tolist())


@cache
def sound_of(kind: tuple[float, ...], seed: int, rate_hz: float = 0.05) -> np.ndarray:
    """Twenty seconds of one kind."""
    return bursts(np.random.default_rng(seed), 20 * RATE, rate_hz, kind)


@pytest.mark.parametrize("rate_hz", [0.1, 1.0])
def test_there_are_as_many_as_asked_for(rate_hz):
    rng = np.random.default_rng(0)
    quiet = np.mean([not bursts(rng, RATE, rate_hz).any() for _ in range(400)])
    assert quiet == pytest.approx(np.exp(-rate_hz), abs=0.08)  # of a Poisson process


def test_the_same_seed_gives_the_same_sound():
    first, second = (bursts(np.random.default_rng(4), 5 * RATE, 1.0) for _ in range(2))
    assert first.dtype == np.float32
    assert np.array_equal(first, second)


def test_they_are_of_every_colour_and_do_not_last():
    sounds = [bursts(np.random.default_rng(seed), 3 * RATE, 0.4) for seed in range(60)]
    spectra = [np.abs(np.fft.rfft(sound)) ** 2 for sound in sounds if sound.any()]
    hertz = np.fft.rfftfreq(3 * RATE, 1 / RATE)
    centroids = [float((hertz * power).sum() / power.sum()) for power in spectra]
    assert min(centroids) < 300
    assert max(centroids) > 3000
    assert np.mean([np.mean(sound != 0) for sound in sounds]) < 0.5


def test_a_burst_at_the_end_is_cut():
    for seed in range(20):
        assert len(bursts(np.random.default_rng(seed), 50, 500.0)) == 50


def test_levels_differ_within_a_recording():
    sounds = [sound for seed in range(100) if (sound := sound_of(BREATH, seed)).any()]
    levels = [10 * np.log10(np.square(sound[sound != 0].astype(float)).mean()) for sound in sounds]
    assert np.std(levels) == pytest.approx(LEVEL_SPREAD_DB, abs=2)


def test_bursts_at_the_same_time_add_up():
    sound = bursts(np.random.default_rng(0), 2 * RATE, 20.0, BREATH)  # about ten at a time, of unit power or so
    assert np.square(sound).mean() > 6


def test_a_burst_begins_and_ends_softly():
    for seed in range(60):
        where = np.flatnonzero(sound := np.abs(sound_of(BREATH, seed)))
        if len(where) and where[-1] < len(sound) - 1:
            assert max(sound[where[0]], sound[where[-1]]) < 0.1 * sound.max()


def test_the_rest_of_the_shares_is_of_other_kinds():
    rng = np.random.default_rng(0)
    kinds = [drawn_kind(rng, (0.0, 0.2, 0.0, 0.0, 0.5, 0.0)) for _ in range(1000)]
    counts = np.bincount(kinds, minlength=KINDS) / 1000
    assert counts == pytest.approx([0, 0.2, 0, 0, 0.5, 0, 0.3], abs=0.05)


def test_puffs_of_air_are_low_and_may_be_louder_than_speech():
    sounds = [bursts(np.random.default_rng(seed), 3 * RATE, 0.4) for seed in range(200)]
    hertz = np.fft.rfftfreq(3 * RATE, 1 / RATE)
    low = [sound for sound in sounds if sound.any() and _share_below(sound, hertz, 300) > 0.85]
    assert 0.2 < len(low) / sum(sound.any() for sound in sounds) < 0.8
    loudest = [np.sqrt(np.mean(sound[sound != 0] ** 2)) for sound in low]
    assert 5 < max(loudest) < 100  # otherwise about unit power, within some dB


@pytest.mark.parametrize("spectrum", [_band, _air])
def test_noise_is_flat_in_its_band_and_falls_outside(spectrum):
    hertz = np.geomspace(20, 8000, 2000)
    for seed in range(50):
        level_db = spectrum(np.random.default_rng(seed), hertz)
        inside = np.flatnonzero(level_db == level_db.max())
        assert level_db.max() == 0
        assert len(inside) == inside[-1] - inside[0] + 1 > 1
        assert (np.diff(level_db[: inside[0]]) > 0).all()
        assert (np.diff(level_db[inside[-1] :]) < 0).all()


def test_clatter_repeats_one_short_sound():
    """A train has many short stretches of sound; without trains, each burst is about one."""
    trains = [sound_of(CLATTER, seed) for seed in range(60)]
    single = [bursts(np.random.default_rng(seed), 20 * RATE, 0.05) for seed in range(60)]
    counts = [[_stretches(sound) for sound in sounds if sound.any()] for sounds in (trains, single)]
    assert np.median(counts[0]) >= 4
    assert np.median(counts[1]) <= 2


def test_clatter_is_irregular_in_time_and_level():
    trains = [sound for seed in range(60) if (sound := sound_of(CLATTER, seed)).any() and _stretches(sound) >= 8]
    assert len(trains) > 10
    gaps = [np.diff(_onsets(train)) for train in trains]
    assert np.median([np.median(np.abs(np.log(gap / np.median(gap)))) for gap in gaps]) > 0.1
    peaks = [np.log10([np.abs(train[round(at * RATE) :][:400]).max() for at in _onsets(train)]) for train in trains]
    assert np.median([np.std(20 * peak) for peak in peaks]) > 3


def test_rustling_lasts_and_flutters_and_breath_does_not():
    """The level of rustling in steps of 20 ms rises and falls many times; that of a breath only once."""
    kinds = [[sound for seed in range(80) if (sound := sound_of(kind, seed)).any()] for kind in (RUSTLE, BREATH)]
    rustling, breathing = ([np.mean(sound != 0) * 20 for sound in sounds] for sounds in kinds)
    assert np.median(rustling) > 2
    assert max(breathing) < 10  # several, at most
    swings = [np.median([_swing_db(sound) for sound in sounds]) for sounds in kinds]
    assert swings[0] > 1.5 * swings[1]


@pytest.mark.parametrize("kind", [2, KINDS - 1])
def test_breaths_puffs_and_knocks_begin_and_end_in_silence_and_rise_faster_than_they_fall(kind):
    sounds = [burst_of_kind(np.random.default_rng(seed), kind).astype(float) for seed in range(60)]
    assert all(sound[0] == sound[-1] == 0 for sound in sounds)
    centres = [np.average(np.linspace(0, 1, len(sound)), weights=sound**2) for sound in sounds]
    assert np.mean(centres) < 0.47


def test_a_breath_has_resonances_and_rustling_has_not():
    sounds = [
        [bursts(np.random.default_rng(seed), 3 * RATE, 0.3, kind) for seed in range(60)] for kind in (BREATH, RUSTLE)
    ]
    breathing, rustling = ([_peaks(sound) for sound in kind if sound.any()] for kind in sounds)
    assert np.mean(np.array(breathing) >= 2) > 0.7
    assert np.mean(np.array(rustling) >= 2) < 0.5


@pytest.mark.parametrize("kind", [BREATH, LAUGHTER])
def test_breath_and_laughter_are_weaker_at_high_frequencies(kind):
    hertz = np.fft.rfftfreq(20 * RATE, 1 / RATE)
    powers = [np.abs(np.fft.rfft(sound)) ** 2 for seed in range(60) if (sound := sound_of(kind, seed, 0.03)).any()]
    tilts = [power[hertz > 4000].mean() / power[(hertz > 300) & (hertz < 1000)].mean() for power in powers]
    assert np.median(tilts) < 0.1


def test_laughter_has_syllables_as_fast_as_it_has_and_mostly_a_voice():
    sounds = [sound_of(LAUGHTER, seed, 0.03) for seed in range(100)]
    sounds = [sound for sound in sounds if sound.any() and _stretches(sound) >= 5]
    rates = [1 / np.median(np.diff(_onsets(sound))) for sound in sounds]
    assert len(rates) > 15
    assert all(3 < rate < 7.5 for rate in rates)
    voiced = np.mean([_periodicity(sound) > 0.4 for sound in sounds])
    breathed = [sound_of(BREATH, seed, 0.03) for seed in range(100)]
    assert 0.3 < voiced < 0.75
    assert np.mean([_periodicity(sound) > 0.4 for sound in breathed if sound.any()]) < 0.1


def test_laughter_dies_away():
    rises = []
    for seed in range(100):
        sound = sound_of(LAUGHTER, seed, 0.03)
        if sound.any() and _stretches(sound) >= 5:
            where = np.flatnonzero(sound)
            halves = np.array_split(np.square(sound[where[0] : where[-1] + 1], dtype=float), 2)
            rises.append(np.log10(halves[1].mean() / halves[0].mean()))
    assert np.median(10 * np.array(rises)) < -2


@pytest.mark.parametrize("kind", [CLATTER, RUSTLE, BREATH, LAUGHTER, MUSIC])
def test_every_kind_has_the_power_of_a_burst(kind):
    sounds = [sound_of(kind, seed) for seed in range(60)]
    power = [np.mean(sound[sound != 0].astype(float) ** 2) for sound in sounds if sound.any()]
    assert all(np.isfinite(power))
    assert 0.03 < np.median(power) < 10


def _swing_db(sound: np.ndarray) -> float:
    """Return the mean change of the level between steps of 20 ms, within the sound."""
    where = np.flatnonzero(sound)
    pieces = sound[where[0] : where[-1] + 1].astype(float)
    pieces = pieces[: len(pieces) // 320 * 320].reshape(-1, 320)
    return float(np.abs(np.diff(10 * np.log10(np.mean(pieces**2, axis=1) + 1e-9))).mean())


def _peaks(sound: np.ndarray) -> int:
    """Count maxima, 1 dB above the valleys beside them, of the spectrum from 200 to 5,000 Hz in steps of 100 Hz."""
    hertz = np.fft.rfftfreq(len(sound), 1 / RATE)
    power = np.abs(np.fft.rfft(sound)) ** 2
    bands = [10 * np.log10(power[(hertz >= low) & (hertz < low + 200)].mean()) for low in range(200, 5000, 100)]
    return sum(
        bands[i] == max(bands[max(0, i - 3) : i + 4])
        and bands[i] > min(bands[max(0, i - 6) : i]) + 1
        and bands[i] > min(bands[i + 1 : i + 7]) + 1
        for i in range(3, len(bands) - 3)
    )


def _onsets(sound: np.ndarray) -> np.ndarray:
    """Return the start times of sounds that are 10 ms of silence apart; below -40 dB is silence."""
    where = np.flatnonzero(np.abs(sound) > 0.01 * np.abs(sound).max())
    return where[np.concatenate([[True], np.diff(where) > 160])] / RATE


def _stretches(sound: np.ndarray) -> int:
    return len(_onsets(sound))


def _periodicity(sound: np.ndarray) -> float:
    """Return the maximum autocorrelation of the loudest 60 ms, at lags of 1.6 to 9 ms."""
    middle = max(480, int(np.abs(sound).argmax()))
    piece = sound[middle - 480 : middle + 480].astype(float)
    shifted = [np.corrcoef(piece[lag:], piece[:-lag])[0, 1] for lag in range(26, 144)]
    return float(max(shifted))


def _share_below(sound: np.ndarray, hertz: np.ndarray, limit_hz: float) -> float:
    power = np.abs(np.fft.rfft(sound)) ** 2
    return float(power[hertz < limit_hz].sum() / power.sum())

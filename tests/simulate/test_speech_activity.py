import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.simulate.speech_activity import active_runs, speech_activity
from tests.simulate.makers import PHRASES_S, UTTERANCE_S, voice_wave


@given(st.lists(st.booleans(), max_size=60))
def test_runs_rebuild_the_mask(mask):
    rebuilt = np.zeros(len(mask), dtype=bool)
    for start, end in zip(*active_runs(np.array(mask, dtype=bool)), strict=True):
        assert start < end
        assert not rebuilt[start:end].any()
        rebuilt[start:end] = True
    assert rebuilt.tolist() == mask


@pytest.mark.parametrize("gain", [1e-2, 1.0, 5.0])
def test_phrases_are_found_to_within_50_ms_at_any_level(gain):
    starts, ends = active_runs(speech_activity(gain * voice_wave(150.0, seed=0)))
    assert np.abs(starts / 100 - [start for start, _ in PHRASES_S]).max() <= 0.05
    assert np.abs(ends / 100 - [end for _, end in PHRASES_S]).max() <= 0.05


def test_noise_below_the_voice_is_not_speech():
    wave = voice_wave(150.0, seed=0)
    noisy = wave + 0.004 * np.random.default_rng(1).normal(size=len(wave)).astype(np.float32)
    active = speech_activity(noisy)
    truth = np.zeros(round(UTTERANCE_S * 100), dtype=bool)
    for start, end in PHRASES_S:
        truth[round(100 * start) : round(100 * end)] = True
    assert (active != truth).mean() < 0.05


def test_a_pause_within_a_phrase_is_kept_and_a_click_is_not():
    wave = voice_wave(150.0, seed=0)
    wave[round(0.8 * 16000) : round(0.95 * 16000)] = 0  # inside the first phrase
    wave[round(1.75 * 16000) : round(1.75 * 16000) + 80] = 0.3  # between two phrases
    active = speech_activity(wave)
    assert active[75:100].all()
    assert not active[160:190].any()


@pytest.mark.parametrize(("level_db", "spoken"), [(-25, True), (-35, False)])
def test_soft_phrases_are_speech_down_to_30_db_below_the_loud_ones(level_db, spoken):
    rng = np.random.default_rng(0)
    wave = 1e-5 * rng.normal(size=10 * 16_000)
    wave[16_000:48_000] = 0.1 * rng.normal(size=32_000)
    wave[96_000:128_000] = 0.1 * 10 ** (level_db / 20) * rng.normal(size=32_000)
    active = speech_activity(wave)
    assert active[100:300].all()
    assert active[600:800].all() if spoken else not active[600:800].any()


@pytest.mark.parametrize("length", [0, 100, 160, 16000])
def test_silence_is_never_speech(length):
    active = speech_activity(np.zeros(length, np.float32))
    assert len(active) == length // 160
    assert not active.any()

"""Mixing, checks, resampling and framing: laws that hold for any cut of the input."""

import numpy as np
import pytest
import soxr
from hypothesis import given
from hypothesis import strategies as st

from sortformer.audio.signal import checked, mixed, rechunked, resampled
from sortformer.errors import InputError
from tests.strategies import spread

RATES = [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000]
signals = st.builds(
    lambda seed, count, channels: np.random.default_rng(seed).uniform(-1, 1, (count, channels)).astype(np.float32),
    seed=st.integers(0, 2**32 - 1),
    count=spread(1, 20_000),
    channels=st.sampled_from([1, 2, 5, 32]),
)


@st.composite
def cut_signals(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray]]:
    whole = draw(signals)
    cuts = sorted(draw(st.lists(spread(0, len(whole)), max_size=12)))
    return whole, np.split(whole, cuts)


@given(case=cut_signals(), rate=st.sampled_from(RATES))
def test_any_cut_of_the_input_gives_the_same_samples(case, rate):
    whole, pieces = case

    def pipeline(parts):
        return np.concatenate(list(resampled(checked(mixed(parts, None, "x"), rate, "x"), rate)))

    np.testing.assert_array_equal(pipeline(pieces), pipeline([whole]))


@given(case=cut_signals(), rate=st.sampled_from(RATES))
def test_resampling_keeps_the_duration_to_one_sample(case, rate):
    whole, pieces = case
    count = sum(len(piece) for piece in resampled((piece[:, 0] for piece in pieces), rate))
    assert abs(count - len(whole) * 16_000 / rate) <= 1


@given(case=cut_signals(), length=spread(1, 5_000))
def test_rechunking_changes_the_cuts_and_nothing_else(case, length):
    whole, pieces = case
    chunks = list(rechunked((piece[:, 0] for piece in pieces), length))
    np.testing.assert_array_equal(np.concatenate(chunks), whole[:, 0])
    assert {len(chunk) for chunk in chunks[:-1]} <= {length}
    assert 1 <= len(chunks[-1]) <= length


@pytest.mark.parametrize("rate", [8_000, 44_100, 48_000])
def test_a_tone_keeps_its_pitch_and_its_place(rate):
    tone = np.sin(2 * np.pi * 440 * np.arange(rate) / rate).astype(np.float32)
    expected = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    wave = np.concatenate(list(resampled([tone], rate)))
    np.testing.assert_allclose(wave[500:15_500], expected[500:15_500], atol=1e-3)
    np.testing.assert_allclose(wave, soxr.resample(tone, rate, 16_000), atol=1e-6)


@given(whole=signals)
def test_mixing_is_the_mean_of_the_channels(whole):
    (wave,) = mixed([whole], None, "x")
    np.testing.assert_allclose(wave, whole.astype(np.float64).mean(axis=1), atol=1e-6)
    assert wave.dtype == np.float32


@given(whole=signals, data=st.data())
def test_one_channel_is_that_channel(whole, data):
    channel = data.draw(st.integers(1, whole.shape[1]))
    (wave,) = mixed([whole], channel, "x")
    np.testing.assert_array_equal(wave, whole[:, channel - 1])


def test_a_channel_out_of_range_names_how_many_there_are():
    with pytest.raises(InputError, match=r"call\.wav has 2 channels: channel 3 does not exist"):
        list(mixed([np.zeros((4, 2), np.float32)], 3, "call.wav"))


@given(case=cut_signals(), data=st.data(), bad=st.sampled_from([np.nan, np.inf, -np.inf, 1000.0]))
def test_a_bad_sample_is_found_wherever_it_is_and_its_time_is_told(case, data, bad):
    whole = case[0][:, 0].copy()
    at = data.draw(spread(0, len(whole) - 1))
    whole[at] = bad
    pieces = np.split(whole, np.cumsum([len(piece) for piece in case[1]])[:-1])
    with pytest.raises(InputError, match=f"at {at / 8_000:.3f} s"):
        list(checked(pieces, 8_000, "x"))


def test_the_loudest_that_float_samples_may_be_is_36_db_above_full_scale():
    loud = np.float32([1.0, -64.0, 64.0])
    assert next(checked([loud], 8_000, "x")) is loud
    with pytest.raises(InputError, match=r"x reaches -65 at 0\.125 s, but float samples range from -1 to 1"):
        list(checked([np.zeros(1_000, np.float32), np.float32([-65.0])], 8_000, "x"))

"""The overlap-add channel against a direct convolution of whole signals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sortformer.config.simulation import ChannelConfig
from sortformer.simulate.channel import ChannelPlan, draw_channel, stack_plans
from sortformer.simulate.render import BLOCK_SAMPLES, FILTER_DELAY, render

SLOTS = 2
LENGTH = 3 * BLOCK_SAMPLES
NUM_SAMPLES = LENGTH - FILTER_DELAY
INFINITE = np.full(1, np.inf, np.float32)


def plain(**changes) -> ChannelPlan:
    """Return one row of a channel that changes only the level."""
    plan = ChannelPlan(
        magnitude=np.ones((1, SLOTS + 2, 257), np.float32),
        response=np.zeros((1, SLOTS + 1, 2), np.int64),
        direct=np.ones(1, np.float32),
        wet=np.zeros(1, np.float32),
        noise_swing_db=np.zeros(1, np.float32),
        snr_db=INFINITE,
        babble_snr_db=INFINITE,
        hum_snr_db=INFINITE,
        hum_hz=np.full(1, 50, np.float32),
        burst_hz=np.zeros(1, np.float32),
        burst_snr_db=INFINITE,
        burst_seed=np.zeros(1, np.int64),
        burst_shares=np.zeros((1, 6), np.float32),
        bystander=np.zeros(1, bool),
        recorded_hz=np.array([[0, np.inf]], np.float32),
        mu_law=np.zeros(1, bool),
        step=np.zeros(1, np.float32),
        clip_share=np.ones(1, np.float32),
        level_dbfs=np.full(1, -20, np.float32),
    )
    return replace(plan, **changes)


@pytest.fixture
def tracks() -> torch.Tensor:
    made = torch.zeros(1, SLOTS + 1, LENGTH)
    rng = torch.Generator().manual_seed(0)
    made[0, 0, 1000:40_000] = 0.05 * torch.randn(39_000, generator=rng)
    made[0, 1, 35_000 : LENGTH - 9000] = 0.02 * torch.randn(LENGTH - 44_000, generator=rng)
    return made


def run(tracks, plan, rooms=None, seed=0, active=NUM_SAMPLES) -> torch.Tensor:
    occupied = tracks.view(1, SLOTS + 1, -1, BLOCK_SAMPLES).abs().amax(-1).numpy() > 0
    return render(
        tracks, occupied, torch.tensor([float(active)]), plan, rooms, NUM_SAMPLES, [torch.Generator().manual_seed(seed)]
    )


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the relative error after the best common gain."""
    found, expected = found.double(), expected.double()
    gain = (found * expected).sum() / expected.square().sum()
    return float((found - gain * expected).square().sum().sqrt() / found.square().sum().sqrt())


def test_a_plain_channel_is_the_sum_of_the_voices(tracks):
    assert relative_error(run(tracks, plain())[0], tracks[0].sum(0)[:NUM_SAMPLES]) < 1e-4


@pytest.mark.parametrize(("direct", "wet"), [(0.0, 1.0), (1.0, 0.2)])
def test_rooms_equal_direct_convolution(tracks, rooms, direct, wet):
    plan = plain(
        direct=np.full(1, direct, np.float32),
        wet=np.full(1, wet, np.float32),
        response=np.array([[[2, 1], [2, 3], [2, 0]]]),
    )
    expected = np.zeros(LENGTH)
    for slot, position in enumerate((1, 3)):
        response = wet * rooms.responses[2, position].astype(float)
        response[0] += direct
        dry = tracks[0, slot].numpy().astype(float)
        spectrum = np.fft.rfft(dry, 2 * LENGTH) * np.fft.rfft(response, 2 * LENGTH)
        expected += np.fft.irfft(spectrum)[:LENGTH]
    assert relative_error(run(tracks, plan, rooms)[0], torch.from_numpy(expected[:NUM_SAMPLES])) < 1e-4


def test_babble_has_a_place_in_the_room_and_a_filter_of_its_own(tracks, rooms):
    murmur = torch.zeros_like(tracks)
    murmur[0, -1] = tracks[0].sum(0)
    magnitude = np.ones((1, SLOTS + 2, 257), np.float32)
    magnitude[0, -2, 128:] = 0.1
    plan = plain(
        magnitude=magnitude,
        direct=np.zeros(1, np.float32),
        wet=np.ones(1, np.float32),
        response=np.array([[[2, 1], [2, 3], [2, 0]]]),
    )
    heard = run(murmur, replace(plan, babble_snr_db=np.zeros(1, np.float32)), rooms)[0]
    as_a_voice = replace(plan, magnitude=magnitude[:, [2, 1, 0, 3]], response=plan.response[:, ::-1])
    assert relative_error(heard, run(murmur.flip(1), as_a_voice, rooms)[0]) < 1e-4


def test_noise_has_its_filter(tracks):
    magnitude = np.ones((1, SLOTS + 2, 257), np.float32)
    magnitude[0, -1, 128:] = 0.1
    noise = run(0 * tracks, plain(magnitude=magnitude, snr_db=np.zeros(1, np.float32)))[0]
    low, high = torch.fft.rfft(noise).abs().square().chunk(2)
    assert float(10 * (low.sum() / high.sum()).log10()) == pytest.approx(20, abs=1)


@pytest.mark.parametrize(("swing_db", "least", "most"), [(0.0, 0.0, 0.5), (6.0, 2.5, 6.0)])
def test_noise_wanders_as_asked_for_and_is_as_loud_on_average(tracks, swing_db, least, most):
    wandering = {"noise_swing_db": np.full(1, swing_db, np.float32), "snr_db": np.zeros(1, np.float32)}
    power = run(0 * tracks, plain(**wandering))[0].unfold(0, 1600, 1600).square().mean(1)
    assert float(10 * power.mean().log10()) == pytest.approx(-20, abs=1)
    assert least <= float(10 * power.log10().std()) <= most


@pytest.mark.parametrize("mains_hz", [50.0, 60.0])
def test_hum_is_the_mains_and_its_first_harmonics_but_the_fourth(tracks, mains_hz):
    humming = {"hum_snr_db": np.zeros(1, np.float32), "hum_hz": np.full(1, mains_hz, np.float32)}
    wave = run(0 * tracks, plain(**humming))[0][: 4 * 16_000]
    power = torch.fft.rfft(wave * torch.hann_window(len(wave))).abs().square()
    lines = (power > 0.01 * power.max()).nonzero().flatten() / 4
    assert set((lines / mains_hz).round().int().tolist()) == {1, 2, 3, 5}
    assert ((lines / mains_hz).round() * mains_hz - lines).abs().max() <= 0.25


@pytest.mark.parametrize("snr_db", [0.0, 10.0, 25.0])
@pytest.mark.parametrize("kind", ["snr_db", "babble_snr_db", "hum_snr_db"])
def test_disturbances_have_the_drawn_level(tracks, kind, snr_db):
    tracks[0, -1] = 0.3 * torch.randn(LENGTH, generator=torch.Generator().manual_seed(9))
    clean = run(tracks, plain())[0].double()
    noisy = run(tracks, plain(**{kind: np.full(1, snr_db, np.float32)}))[0].double()
    gain = (noisy * clean).sum() / clean.square().sum()
    rest = noisy - gain * clean
    measured = 10 * torch.log10((gain * clean).square().sum() / rest.square().sum())
    assert float(measured) == pytest.approx(snr_db, abs=0.5)


@pytest.mark.parametrize(("bystander", "measured"), [(False, NUM_SAMPLES), (True, LENGTH // 4)])
def test_babble_is_measured_over_the_recording_and_a_bystander_where_it_talks(tracks, bystander, measured):
    tracks[0, -1, : LENGTH // 4] = 0.3 * torch.randn(LENGTH // 4, generator=torch.Generator().manual_seed(9))
    murmur = {"babble_snr_db": np.full(1, 10, np.float32), "bystander": np.full(1, bystander)}
    clean, noisy = (run(tracks, plain(**changes))[0].double() for changes in ({}, murmur))
    voices = (noisy * clean).sum() / clean.square().sum() * clean
    power = (noisy - voices).square().sum() / measured
    assert float(10 * (voices.square().mean() / power).log10()) == pytest.approx(10, abs=0.5)


def test_bursts_come_as_often_and_as_loud_as_drawn(tracks):
    drawn = {"burst_hz": np.full(1, 2, np.float32), "burst_seed": np.full(1, 3)}
    clean = run(tracks, plain())[0]
    loud, soft, again = (
        run(tracks, plain(burst_snr_db=np.full(1, snr, np.float32), **drawn))[0] for snr in (0, 20, 20)
    )
    assert torch.equal(soft, again)
    scale = (clean * soft).sum() / clean.square().sum()
    assert float((soft - scale * clean).abs().max()) > 0.01
    assert (loud - soft).square().sum() > (soft - scale * clean).square().sum()
    low = {"level_dbfs": np.full(1, -60, np.float32)} | drawn
    alone = [run(0 * tracks, plain(burst_snr_db=np.full(1, snr, np.float32), **low)) for snr in (0, 20)]
    torch.testing.assert_close(alone[0], 10 * alone[1])


def test_a_recording_that_would_be_too_loud_is_as_loud_as_it_can_be(tracks):
    assert float(run(tracks, plain(level_dbfs=np.full(1, 10, np.float32))).abs().max()) == pytest.approx(0.99)


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_the_level_is_that_of_the_active_speech(tracks, share):
    wave = run(tracks, plain(level_dbfs=np.full(1, -30, np.float32)), active=share * NUM_SAMPLES)
    assert float(10 * (wave.square().mean() / share).log10()) == pytest.approx(-30, abs=0.2)


def test_a_telephone_leaves_nothing_above_4_khz(tracks):
    config = ChannelConfig(telephone_probability=1, low_pass_probability=0, high_pass_probability=0)
    plan = draw_channel(np.random.default_rng(0), config, SLOTS, None)
    wave = run(tracks, plain(magnitude=plan.magnitude[None]))[0]
    power = torch.fft.rfft(wave).abs().square()
    hertz = torch.linspace(0, 8000, len(power))
    assert power[hertz > 4000].sum() < 1e-3 * power.sum()


@pytest.mark.parametrize("first_hz", [0, 300])
def test_a_recorder_keeps_no_noise_beyond_its_band(tracks, first_hz):
    disturbed = {"snr_db": np.zeros(1, np.float32), "mu_law": np.ones(1, bool)}
    wide, narrow = (
        run(tracks, plain(recorded_hz=np.array([band], np.float32), **disturbed))[0]
        for band in ((0, np.inf), (first_hz, 3400))
    )
    before, after = (torch.fft.rfft(wave).abs().square() for wave in (wide, narrow))
    hertz = torch.linspace(0, 8000, len(after))
    inside, outside = (hertz > first_hz) & (hertz < 3400), (hertz > 3600) | (hertz < 0.75 * first_hz)
    torch.testing.assert_close(after[inside], before[inside], rtol=1e-3, atol=1e-3)
    assert before[outside].sum() > 0.1 * before.sum()
    assert after[outside].sum() < 1e-9 * after.sum()


def test_recordings_at_8_khz_are_as_frequent_as_asked_for_and_half_of_them_calls():
    config = ChannelConfig(narrowband_probability=0.4, mu_law_probability=0)
    plans = [draw_channel(np.random.default_rng(seed), config, SLOTS, None) for seed in range(400)]
    bands = np.stack([plan.recorded_hz for plan in plans])
    narrow = np.isfinite(bands[:, 1])
    assert 0.33 < narrow.mean() < 0.47
    assert not bands[~narrow, 0].any()
    assert 0.4 < (bands[narrow, 0] > 0).mean() < 0.6
    assert 0.4 < np.mean([plan.mu_law for plan in plans]) / narrow.mean() < 0.6
    assert ((bands[narrow, 1] >= 3200) & (bands[narrow, 1] <= 3950)).all()
    calls = bands[bands[:, 0] > 0, 0]
    assert ((calls >= 150) & (calls <= 350)).all()


def test_one_microphone_has_one_filter_for_all_voices_as_often_as_asked_for():
    config = ChannelConfig(one_microphone_probability=0.6)
    plans = [draw_channel(np.random.default_rng(seed), config, SLOTS, None) for seed in range(400)]
    alike = np.array([(plan.magnitude[:-1] == plan.magnitude[0]).all() for plan in plans])
    assert 0.53 < alike.mean() < 0.67
    noise = [np.allclose(plan.magnitude[-1], plan.magnitude[0], rtol=0.1) for plan in plans]
    assert not any(noise)


def test_a_clean_channel_is_the_voices_and_a_level(tracks, rooms):
    config = ChannelConfig(clean_probability=1, hum_probability=1, babble_probability=1, clip_probability=1)
    plan = draw_channel(np.random.default_rng(0), config, SLOTS, rooms)
    wave, expected = run(tracks, stack_plans([plan]), rooms)[0], run(tracks, plain())[0]
    gain = (wave * expected).sum() / expected.square().sum()
    torch.testing.assert_close(wave, gain * expected, atol=1e-5, rtol=0)


def test_clipping_and_quantisation_do_what_they_say(tracks):
    wave = run(tracks, plain())[0]
    clipped = run(tracks, plain(clip_share=np.full(1, 0.4, np.float32)))[0]
    assert float(clipped.abs().max() / wave.abs().max()) == pytest.approx(0.4, abs=0.01)
    coarse = run(tracks, plain(step=np.full(1, 2**-7, np.float32)))[0]
    assert torch.equal(coarse, (coarse * 128).round() / 128)
    assert len(run(tracks, plain(mu_law=np.ones(1, bool)))[0].unique()) <= 255


def test_no_speech_at_all_leaves_quiet_noise_and_no_nan():
    wave = run(torch.zeros(1, SLOTS + 1, LENGTH), plain(snr_db=np.full(1, 10, np.float32)))
    assert torch.isfinite(wave).all()
    assert 0 < wave.abs().max() <= 1


def test_stacked_plans_render_as_single_ones(tracks, rooms):
    config = ChannelConfig(babble_probability=0)
    plans = [draw_channel(np.random.default_rng(seed), config, SLOTS, rooms) for seed in range(5)]
    occupied = tracks.view(1, SLOTS + 1, -1, BLOCK_SAMPLES).abs().amax(-1).numpy() > 0
    together = render(
        tracks.repeat(5, 1, 1),
        occupied.repeat(5, axis=0),
        torch.full((5,), float(NUM_SAMPLES)),
        stack_plans(plans),
        rooms,
        NUM_SAMPLES,
        [torch.Generator().manual_seed(0) for _ in plans],
    )
    for row, plan in enumerate(plans):
        alone = run(tracks, stack_plans([plan]), rooms)[0]
        assert torch.allclose(together[row], alone, atol=2e-3 if plan.step or plan.mu_law else 1e-5)

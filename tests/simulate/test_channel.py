"""The channel of a conversation is as often, as loud and as narrow as its ranges say."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sortformer.simulate import Rooms
from sortformer.simulate.channel import CLEAN, FILTER_BINS, ChannelPlan, draw_channel

SLOTS = 3
HERTZ = np.linspace(0, 8000, FILTER_BINS)


def drawn(rooms: Rooms | None = None, count: int = 300, **changes: Any) -> list[ChannelPlan]:
    """Draw channels in which there is nothing but what is asked for."""
    config = replace(CLEAN, **changes)
    return [draw_channel(np.random.default_rng(seed), config, SLOTS, rooms) for seed in range(count)]


@pytest.mark.parametrize(
    ("probability", "bounds", "limits", "name", "otherwise"),
    [
        ("noise_probability", "snr_db", (11.0, 12.0), "snr_db", np.inf),
        ("hum_probability", "snr_db", (11.0, 12.0), "hum_snr_db", np.inf),
        ("babble_probability", "babble_snr_db", (11.0, 12.0), "babble_snr_db", np.inf),
        ("bystander_probability", "bystander_snr_db", (11.0, 12.0), "babble_snr_db", np.inf),
        ("burst_probability", "burst_snr_db", (11.0, 12.0), "burst_snr_db", np.inf),
        ("burst_probability", "burst_hz", (0.3, 0.4), "burst_hz", 0.0),
        ("clip_probability", "clip_share", (0.3, 0.4), "clip_share", 1.0),
        ("coarse_probability", "coarse_bits", (8, 8), "step", 0.0),
    ],
)
def test_what_disturbs_is_as_frequent_as_asked_for_and_drawn_from_its_range(
    probability, bounds, limits, name, otherwise
):
    plans = drawn(**{probability: 0.3, bounds: limits})
    values = np.array([getattr(plan, name) for plan in plans])
    there = values != otherwise
    assert 0.2 < there.mean() < 0.4
    low, high = (2**-7, 2**-7) if name == "step" else limits  # full scale is from -1 to 1
    assert (values[there] >= np.float32(low)).all()
    assert (values[there] <= np.float32(high)).all()
    assert [bool(plan.bystander) for plan in plans] == (there & (probability == "bystander_probability")).tolist()


def test_mains_are_those_of_either_side_of_the_ocean():
    assert {float(plan.hum_hz) for plan in drawn()} == {50.0, 60.0}


def test_microphones_are_far_or_near_or_hear_no_room(rooms):
    plans = drawn(rooms, room_probability=0.3, near_probability=0.3, near_room_db=(-20.0, -14.0))
    direct, wet = (np.array([getattr(plan, name) for plan in plans]) for name in ("direct", "wet"))
    far, dry = direct == 0, wet == 0
    near = ~far & ~dry
    assert 0.2 < far.mean() < 0.4
    assert 0.2 < near.mean() < 0.4
    assert (wet[far] == 1).all()
    assert (direct[~far] == 1).all()
    assert ((wet[near] >= 0.1) & (wet[near] <= 0.2)).all()
    assert all(plan.wet == 0 for plan in drawn(None, room_probability=1.0))


def test_all_talk_in_one_room_each_from_a_place_of_their_own(rooms):
    places = np.stack([plan.response for plan in drawn(rooms)])
    assert (places[:, :, 0] == places[:, :1, 0]).all()
    assert set(places[:, 0, 0]) == {0, 1, 2}
    assert all(len(set(row)) == SLOTS + 1 for row in places[:, :, 1].tolist())


@pytest.mark.parametrize(
    ("changes", "first_hz", "last_hz"),
    [
        ({"low_pass_probability": 1.0, "low_pass_hz": (3000.0, 3000.0)}, 0, 3000),
        ({"high_pass_probability": 1.0, "high_pass_hz": (400.0, 400.0)}, 400, 8000),
        ({"telephone_probability": 1.0}, 300, 3400),
    ],
)
def test_a_band_passes_voices_and_noise_within_it_and_40_db_less_beyond(changes, first_hz, last_hz):
    for plan in drawn(count=10, **changes):
        voices, noise = plan.magnitude[:-1], plan.magnitude[-1]
        inside = (1.5 * first_hz < HERTZ) & (0.9 * last_hz > HERTZ)
        outside = (0.5 * first_hz > HERTZ) | (1.1 * last_hz < HERTZ)
        assert outside.any()
        np.testing.assert_allclose(voices[:, inside], 1.0, atol=1e-6)
        np.testing.assert_allclose(voices[:, outside], 0.01, atol=1e-6)
        whole = drawn(count=1)[0].magnitude[-1]
        assert noise[outside].max() < 0.1 * whole[inside].max()


def test_bands_are_limited_independently_of_one_another():
    half = dict.fromkeys(("telephone_probability", "low_pass_probability", "high_pass_probability"), 0.5)
    plans = drawn(low_pass_hz=(5000.0, 5000.0), high_pass_hz=(150.0, 150.0), **half)
    cut = np.stack([plan.magnitude[0] for plan in plans]) < 0.1
    telephone, low_pass, high_pass = (cut[:, hertz == HERTZ][:, 0] for hertz in (4000.0, 6000.0, 62.5))
    assert telephone.mean() == pytest.approx(0.5, abs=0.1)
    low_pass, high_pass = low_pass[~telephone], high_pass[~telephone]  # a telephone cuts those frequencies, too
    assert low_pass.mean() == pytest.approx(0.5, abs=0.1)
    assert high_pass.mean() == pytest.approx(0.5, abs=0.1)
    assert (low_pass & high_pass).mean() == pytest.approx(0.25, abs=0.1)


def test_filters_of_voices_differ_by_what_the_equaliser_may_do():
    levels = np.stack([20 * np.log10(plan.magnitude[:-1, HERTZ == 1000]) for plan in drawn(equaliser_db=3.0)])
    assert levels.mean() == pytest.approx(0.0, abs=0.3)
    assert levels.std() == pytest.approx(3.0, rel=0.1)
    assert (levels.std(axis=1) > 0).all()


@pytest.mark.parametrize("slope", [0.0, 1.0, 2.0])
def test_the_power_of_noise_falls_with_its_slope(slope):
    level_db = np.mean([20 * np.log10(plan.magnitude[-1]) for plan in drawn(noise_slope=(slope, slope))], axis=0)
    octaves = np.log2(HERTZ[1:])
    assert np.polyfit(octaves, level_db[1:], 1)[0] == pytest.approx(-10 * np.log10(2) * slope, abs=0.3)


def test_a_channel_is_clean_as_often_as_asked_for():
    clean = [plan.hum_snr_db == np.inf for plan in drawn(clean_probability=0.3, hum_probability=1.0)]
    assert np.mean(clean) == pytest.approx(0.3, abs=0.1)


def test_a_clean_channel_has_the_level_that_is_asked_for():
    levels = [float(plan.level_dbfs) for plan in drawn(clean_probability=1.0, level_dbfs=(-18.5, -18.0))]
    assert min(levels) >= -18.5
    assert max(levels) <= -18.0

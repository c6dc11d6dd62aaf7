import math
import operator
from functools import reduce

import pytest

from sortformer.config.simulation import CastingConfig, ChannelConfig, SimulationConfig, TurnTakingConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.errors import ConfigError


def test_a_config_survives_being_a_dictionary():
    config = SimulationConfig(num_slots=2, speaker_weights=(1, 2), channel=ChannelConfig(snr_db=(0, 10)))
    assert from_dict(SimulationConfig, to_dict(config)) == config


def test_tables_of_a_recipe_fill_nested_configs():
    config = from_dict(
        SimulationConfig,
        {"replay_probability": 1, "turn_taking": {"turn_median_s": [1, 2]}, "channel": {"snr_db": [5, 20]}},
    )
    assert config.turn_taking == TurnTakingConfig(turn_median_s=(1.0, 2.0))
    assert config.channel.snr_db == (5.0, 20.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SimulationConfig(speaker_weights=()), "speaker_weights"),
        (lambda: SimulationConfig(speaker_weights=(0, 0)), "speaker_weights"),
        (lambda: SimulationConfig(speaker_weights=(-1, 2)), "speaker_weights"),
        (lambda: SimulationConfig(num_slots=2, speaker_weights=(1, 1, 1)), "num_slots = 2"),
        (lambda: SimulationConfig(num_slots=3), r"\(four unless set\) needs between 1 and num_slots = 3 "),
        (lambda: SimulationConfig(replay_probability=1.1), "between 0 and 1"),
        (lambda: TurnTakingConfig(overlap_probability=(0.5, 2)), "between 0 and 1"),
        (lambda: TurnTakingConfig(turn_median_s=(2, 1)), r"range \[low, high\]"),
        (lambda: TurnTakingConfig(turn_median_s=(0, 1)), "above zero"),
        (lambda: TurnTakingConfig(turn_spread=-1), "negative"),
        (lambda: ChannelConfig(room_probability=0.6, near_probability=0.6), "exceed 1"),
        (lambda: ChannelConfig(clatter_share=0.6, rustle_share=0.6), "sum to at most 1"),
        (lambda: ChannelConfig(breath_share=-0.1), "at least 0"),
        (lambda: ChannelConfig(snr_db=(1, 2, 3)), r"range \[low, high\]"),
        (lambda: CastingConfig(voice_gain_db=-1), "negative"),
        (lambda: CastingConfig(voice_gain_db=math.inf), "voice_gain_db must be finite"),
        (lambda: CastingConfig(turn_tilt=1), "turn_tilt of the casting must be at least 0 and below 1, got 1"),
        (lambda: CastingConfig(turn_speed=-0.1), "turn_speed of the casting must be at least 0 and below 1, got -0.1"),
        (lambda: CastingConfig(turn_gain_db=math.inf), "turn_gain_db must be finite"),
        (lambda: TurnTakingConfig(turn_spread=math.inf), "turn_spread must be finite"),
        (lambda: TurnTakingConfig(pause_median_s=(1, math.inf)), "pause_median_s must be finite"),
        (lambda: SimulationConfig(shortest_pause_s=math.inf), "shortest_pause_s must be finite"),
        (lambda: ChannelConfig(snr_db=(3, math.inf)), "snr_db must be finite"),
        (lambda: ChannelConfig(level_dbfs=(-math.inf, -10)), "level_dbfs must be finite"),
        (lambda: ChannelConfig(noise_swing_db=(-5, 6)), "noise_swing_db must not be negative"),
        (lambda: ChannelConfig(burst_hz=(-1, 1)), "burst_hz must not be negative"),
        (lambda: ChannelConfig(low_pass_hz=(-5, -5)), "low_pass_hz must be above zero"),
        (lambda: ChannelConfig(narrowband_to_hz=(0, 3900)), "narrowband_to_hz must be above zero"),
        (lambda: ChannelConfig(clip_share=(-1, -0.5)), "clip_share must be above zero"),
        (lambda: ChannelConfig(clip_share=(0.5, 1.5)), "clip_share must not exceed 1"),
        (lambda: CastingConfig(voice_gain_db=400), "voice_gain_db must lie between -200 and 200 dB, got 400"),
        (lambda: ChannelConfig(snr_db=(-1e3, 10)), "snr_db must lie between -200 and 200 dB"),
        (lambda: ChannelConfig(level_dbfs=(-30, 300)), "level_dbfs must lie between -200 and 200 dB"),
        (lambda: TurnTakingConfig(turn_spread=1000), "turn_spread must not exceed 10, got 1000"),
        (lambda: TurnTakingConfig(turn_median_s=(1, 1e300)), "turn_median_s must not exceed 1,000,000 s"),
        (lambda: ChannelConfig(narrowband_from_hz=(300, 5000)), "narrowband_from_hz .* must lie below"),
        (lambda: ChannelConfig(babble_voices=(-3, -1)), "babble_voices must be at least 1"),
        (lambda: ChannelConfig(coarse_bits=(0, 0)), "coarse_bits must be at least 1"),
        (lambda: from_dict(SimulationConfig, {"channel": {"snr": [1, 2]}}), "snr_db"),
    ],
)
def test_an_impossible_config_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_shares_in_tenths_may_be_one_together():
    """In binary floating point their sum is 1.0000000000000002."""
    shares = ChannelConfig(
        clatter_share=0.1, rustle_share=0.2, breath_share=0.3, laughter_share=0.1, music_share=0.2, pause_share=0.1
    )
    assert reduce(operator.add, shares.burst_shares) > 1  # as sum() does up to Python 3.11

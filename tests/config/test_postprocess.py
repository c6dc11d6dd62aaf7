"""Post-processing configs are always valid."""

import math

import pytest

from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.errors import ConfigError


@pytest.mark.parametrize("name", ["onset", "offset"])
@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_a_threshold_is_a_probability(name, value):
    with pytest.raises(ConfigError, match=name):
        PostprocessConfig(**{name: value})


@pytest.mark.parametrize("name", ["pad_on_s", "pad_off_s", "min_on_s", "min_off_s"])
@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan, 1e17])
def test_a_duration_is_not_negative_and_its_microseconds_can_be_counted(name, value):
    with pytest.raises(ConfigError, match=name):
        PostprocessConfig(**{name: value})


def test_the_offset_may_exceed_the_onset():
    config = PostprocessConfig(onset=0.56, offset=1.0, pad_on_s=0.063)
    assert from_dict(PostprocessConfig, to_dict(config)) == config

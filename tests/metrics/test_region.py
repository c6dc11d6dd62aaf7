"""The scored region: the UEM, else the duration, else the extent."""

import math

import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.errors import ConfigError, InputError
from sortformer.metrics.der import der
from sortformer.metrics.protocol import FAIR, protocol_named
from sortformer.metrics.region import Region, scored_region

ONE, TWO = [Turn(1, 2, "a")], [Turn(3, 4, "b")]


@pytest.mark.parametrize("part", [(2.0, 1.0), (math.nan, 5.0), (0.0, math.nan)])
def test_a_part_that_cannot_be_is_refused(part):
    with pytest.raises(InputError, match="a region needs start <= end in seconds"):
        scored_region([], [], [part])


def test_a_uem_comes_first_and_its_parts_are_joined():
    assert scored_region(Diarization(tuple(ONE), 9), TWO, [(5, 6), (0, 2), (1, 3), (4, 4)]) == Region(
        ((0, 3), (5, 6)), "uem"
    )
    assert scored_region(ONE, TWO, []) == Region((), "uem")
    assert scored_region(ONE, TWO, [(1, 2), (3, 5)]).duration == 3


def test_a_known_duration_is_the_whole_recording():
    assert scored_region(ONE, Diarization((), 7)) == Region(((0, 7),), "duration")
    assert scored_region(Diarization((), 5), Diarization((), 7)) == Region(((0, 7),), "duration")


def test_else_the_extent_of_both():
    assert scored_region(ONE, TWO) == Region(((1, 4),), "extent")
    assert scored_region([], []) == Region((), "extent")


@pytest.mark.parametrize("side", [Diarization(tuple(ONE), 9).to_pyannote(), iter(ONE), [(1, 2, "a")], "a.rttm"])
def test_what_is_no_turns_is_refused(side):
    with pytest.raises(InputError, match="each side must be a Diarization or a sequence of Turn, got"):
        der(ONE, side)


def test_a_protocol_has_a_name():
    assert protocol_named("fair") is FAIR
    with pytest.raises(ConfigError, match="choose one of full, fair, forgiving"):
        protocol_named("md-eval")

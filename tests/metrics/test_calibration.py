"""Confidence: the correct share of a turn, the calibration error, and the fitted calibration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Turn
from sortformer.config.confidence import ConfidenceConfig
from sortformer.errors import ConfigError
from sortformer.metrics.calibration import FEWEST_TURNS, Judged, calibration_error, fitted, judged
from sortformer.metrics.compared import compared
from sortformer.metrics.der import der
from tests.strategies import turn_lists


def drawn(number: int, slope: float, offset: float, seed: int = 0) -> list[Judged]:
    """Return turns of a second that are entirely right, or wrong, as often as such a config says."""
    rng = np.random.default_rng(seed)
    said, truth = rng.uniform(0.5, 0.999, number), ConfidenceConfig(slope, offset)
    return [Judged(p, float(rng.random() < truth.of(p)), 1.0) for p in said.tolist()]


def with_confidence(turns: list[Judged], config: ConfidenceConfig) -> list[Judged]:
    return [Judged(config.of(turn.confidence), turn.right, turn.seconds) for turn in turns]


def test_a_turn_is_right_where_the_speaker_speaks_with_whom_its_own_is_paired():
    reference = (Turn(0, 4, "a"), Turn(3, 8, "b"))
    hypothesis = (Turn(1, 5, "x", 0.9), Turn(6, 10, "y", 0.7), Turn(0, 1, "z", 0.5), Turn(2, 3, "x"))
    assert compared(reference, hypothesis).pairs == {"x": "a", "y": "b"}
    assert judged(reference, hypothesis) == [Judged(0.9, 0.75, 4), Judged(0.7, 0.5, 4), Judged(0.5, 0.0, 1)]


def test_only_what_is_scored_counts():
    reference, hypothesis = (Turn(0, 4, "a"),), (Turn(0, 5, "x", 0.9), Turn(8, 9, "x", 0.8))
    assert judged(reference, hypothesis, [(3, 5), (6, 7)]) == [Judged(0.9, 0.5, 2)]


@given(turn_lists(), turn_lists())
def test_what_is_right_is_what_the_der_calls_correct(reference, hypothesis):
    sure = [Turn(turn.start, turn.end, f"their {turn.speaker}", 0.5) for turn in hypothesis]
    apart = [turn for turn in sure if not any(turn is not other and _same(turn, other) for other in sure)]
    right = sum(turn.right * turn.seconds for turn in judged(reference, apart))
    counts = der(reference, apart)
    assert right == pytest.approx(counts.total - counts.miss - counts.confusion, abs=1e-6)


def _same(turn: Turn, other: Turn) -> bool:
    return turn.speaker == other.speaker and turn.start < other.end and other.start < turn.end


def test_confidence_that_is_kept_is_off_by_nothing_and_overconfidence_by_what_it_is():
    assert calibration_error([Judged(0.75, 0.5, 2.0), Judged(0.75, 1.0, 2.0)] * 50) == pytest.approx(0, abs=1e-12)
    assert calibration_error([Judged(0.9, 0.6, 3.0)] * 20) == pytest.approx(0.3)
    assert calibration_error([Judged(0.2, 0.1, 1.0), Judged(0.9, 1.0, 1.0)]) == pytest.approx(0.1)
    assert np.isnan(calibration_error([]))


@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.5, 0.4), (2.0, -1.0)])
def test_what_drew_the_truth_is_found(slope, offset):
    found = fitted(drawn(20_000, slope, offset))
    assert found is not None
    assert found.slope == pytest.approx(slope, rel=0.1)
    assert found.offset == pytest.approx(offset, abs=0.15)


def test_of_other_turns_it_is_off_by_less():
    config = fitted(drawn(2000, 0.5, 0.4))
    others = drawn(2000, 0.5, 0.4, seed=1)
    assert config is not None
    assert calibration_error(with_confidence(others, config)) < 0.5 * calibration_error(others)


def test_turns_that_are_all_right_leave_a_doubt_and_few_turns_say_nothing():
    right = [Judged(p, 1.0, 1.0) for p in np.linspace(0.5, 0.99, FEWEST_TURNS)]
    config = fitted(right)
    assert config is not None
    assert 0.9 < config.of(0.9) < 1
    assert fitted(right[1:]) is None


@pytest.mark.parametrize(("right", "share"), [(1.0, 51 / 52), (0.0, 1 / 52)])
def test_the_doubt_is_that_of_one_more_turn_that_is_right_and_one_that_is_wrong(right, share):
    config = fitted([Judged(0.8, right, 2.0)] * FEWEST_TURNS)
    assert config is not None
    assert config.of(0.8) == pytest.approx(share, abs=1e-4)


def test_longer_turns_count_for_more():
    turns = [Judged(0.8, 1.0, 9.0), Judged(0.8, 0.0, 1.0)] * 500
    config = fitted(turns)
    assert config is not None
    assert config.of(0.8) == pytest.approx(0.9, abs=0.01)


@given(st.floats(0, 1), st.floats(0, 50), st.floats(-100, 100))
def test_a_confidence_is_a_probability_that_rises_with_the_mean(p, slope, offset):
    config = ConfidenceConfig(slope, offset)
    assert 0 <= config.of(p) <= config.of(1.0) <= 1


@given(st.floats(0.001, 0.999))
def test_slope_one_and_no_offset_change_nothing(p):
    assert ConfidenceConfig().of(p) == pytest.approx(p)


@pytest.mark.parametrize(("values", "reason"), [({"slope": -0.1}, "slope"), ({"offset": 101.0}, "offset")])
def test_what_is_no_confidence_is_refused(values, reason):
    with pytest.raises(ConfigError, match=reason):
        ConfidenceConfig(**values)

"""Learn then Test: the guarantee holds as often as promised."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.metrics.risk import boldest_safe, fewest_samples, risk_p_value

tolerances = st.floats(0.01, 0.5)
counts = st.integers(1, 60)


def chance(ones: int, count: int, rate: float) -> float:
    return math.comb(count, ones) * rate**ones * (1 - rate) ** (count - ones)


@given(count=counts, tolerance=tolerances, error=st.floats(0.01, 0.5))
def test_where_the_risk_is_the_tolerance_it_is_called_safe_no_more_often_than_allowed(count, tolerance, error):
    called_safe = sum(
        chance(ones, count, tolerance)
        for ones in range(count + 1)
        if risk_p_value([1.0] * ones + [0.0] * (count - ones), tolerance) <= error
    )
    assert called_safe <= error + 1e-9


@given(losses=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), tolerance=tolerances)
def test_a_p_value_lies_between_0_and_1_and_falls_with_the_losses(losses, tolerance):
    found = risk_p_value(losses, tolerance)
    assert 0 <= found <= 1
    assert risk_p_value([loss / 2 for loss in losses], tolerance) <= found + 1e-12
    assert risk_p_value(losses * 2, tolerance) <= found + 1e-9 or np.mean(losses) >= tolerance


@pytest.mark.parametrize(("losses", "tolerance", "ones"), [([0.5] * 21 + [0.0] * 79, 0.2, 11), ([0.1] * 30, 0.3, 3)])
def test_where_it_is_less_than_hoeffdings_it_is_bentkus_p_value(losses: list[float], tolerance: float, ones: int):
    at_most = sum(chance(number, len(losses), tolerance) for number in range(ones + 1))
    assert risk_p_value(losses, tolerance) == pytest.approx(math.e * at_most)


@pytest.mark.parametrize(("tolerance", "error", "needed"), [(0.05, 0.05, 59), (0.1, 0.05, 29), (0.02, 0.1, 114)])
def test_that_many_losses_of_0_just_suffice(tolerance, error, needed):
    assert fewest_samples(tolerance, error) == needed
    assert boldest_safe([[0.0] * needed], tolerance, error) == 0
    assert boldest_safe([[0.0] * (needed - 1)], tolerance, error) is None


def test_the_first_setting_that_may_be_unsafe_ends_the_search():
    safe, unsafe = [0.0] * 100, [0.2] * 100
    assert boldest_safe([safe, safe, safe], 0.1, 0.05) == 2
    assert boldest_safe([safe, unsafe, safe], 0.1, 0.05) == 0
    assert boldest_safe([unsafe, safe], 0.1, 0.05) is None

"""Learn then Test: the guarantee holds as often as promised."""

import math

import numpy as np
import pytest
from hypothesis import example, given
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


@given(
    ones=st.lists(st.booleans(), min_size=1, max_size=60),
    loss=st.sampled_from([0.05, 0.1, 0.25, 1.0]),
    tolerance=tolerances,
)
@example(ones=[True] * 21 + [False] * 79, loss=0.5, tolerance=0.2)
@example(ones=[True] * 30, loss=0.1, tolerance=0.3)
def test_the_p_value_is_the_lesser_of_hoeffdings_and_bentkus(ones, loss, tolerance):
    count, total = len(ones), round(loss * sum(ones), 9)  # three tenths are 0.3
    rate = min(total / count, tolerance)
    hoeffding = ((1 - tolerance) / (1 - rate)) ** (count - count * rate)  # Hoeffding, 1963, theorem 1
    hoeffding *= (tolerance / rate) ** (count * rate) if rate else 1.0
    bentkus = math.e * sum(chance(number, count, tolerance) for number in range(math.ceil(total) + 1))
    assert risk_p_value([loss * one for one in ones], tolerance) == pytest.approx(min(hoeffding, bentkus))


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

"""The interval of a rate: contains the rate, is reproducible, and has about the nominal coverage."""

import numpy as np
import pytest
from scipy.stats import binom

from sortformer.metrics.bootstrap import ratio_interval


def test_equal_recordings_leave_no_doubt():
    assert ratio_interval([2.0] * 5, [10.0] * 5) == pytest.approx((0.2, 0.2))


def test_it_is_around_the_rate_and_the_same_again():
    errors, totals = [1.0, 4.0, 2.0, 9.0], [10.0, 10.0, 20.0, 30.0]
    low, high = ratio_interval(errors, totals)
    assert 0.1 <= low < 16 / 70 < high <= 0.4
    assert ratio_interval(errors, totals) == (low, high)
    assert ratio_interval([each / 1000 for each in errors], [each / 1000 for each in totals]) == pytest.approx(
        (low, high)
    )


def test_of_recordings_alike_long_it_is_that_of_drawing_the_wrong_ones():
    found = ratio_interval([1.0, 0.0] * 200, [1.0] * 400)
    assert found == pytest.approx(binom.ppf([0.025, 0.975], 400, 0.5) / 400, abs=1.5 / 400)


def test_long_recordings_weigh_more():
    assert ratio_interval([0, 50], [1, 99])[1] == pytest.approx(50 / 99)
    assert ratio_interval([0, 50], [99, 99])[1] == pytest.approx(50 / 99)
    assert ratio_interval([0, 50] * 20, [1, 99] * 20)[0] > ratio_interval([0, 50] * 20, [99, 99] * 20)[1]


def test_draws_without_reference_speech_have_a_rate_of_one_or_none():
    assert ratio_interval([3.0, 4.0], [0.0, 0.0]) == (1.0, 1.0)
    assert ratio_interval([0.0, 0.0], [0.0, 0.0]) == (0.0, 0.0)
    assert ratio_interval([46.0, 1.0], [0.0, 10.0]) == pytest.approx((0.1, 4.7))


def test_it_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(100):
        totals = rng.uniform(50, 150, 40)
        errors = totals * rng.beta(2, 8, 40)  # the mean is 0.2
        low, high = ratio_interval(errors.tolist(), totals.tolist())
        hits += low <= 0.2 <= high
    assert 85 <= hits <= 100

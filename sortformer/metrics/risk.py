"""Risk control: choose a setting whose risk is low with a statistical guarantee (Learn then Test)."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

__all__ = ["boldest_safe", "fewest_samples", "risk_p_value"]


def risk_p_value(losses: Sequence[float] | np.ndarray, tolerance: float) -> float:
    """Return the Hoeffding-Bentkus p-value of the hypothesis that the expected loss exceeds ``tolerance``.

    Angelopoulos et al., "Learn then Test", arXiv 2110.01052, proposition 2. ``losses`` are those of one or more
    independent samples, between 0 and 1, as is the ``tolerance``.
    """
    found = np.asarray(losses, dtype=np.float64)
    mean, count = float(found.mean()), len(found)
    hoeffding = math.exp(-count * _divergence(min(mean, tolerance), tolerance))
    # Rounding errors may put the mean of twenty losses of 0.05 above 0.05: it must not round up to one more.
    bentkus = math.e * float(binom.cdf(math.ceil(count * mean - 1e-9), count, tolerance))
    return min(1.0, hoeffding, bentkus)


def fewest_samples(tolerance: float, error: float) -> int:
    """Return the least number of samples for any setting to be safe: with fewer, even losses of 0 may be chance.

    Both arguments are between 0 and 1.
    """
    return math.ceil(math.log(error) / math.log1p(-tolerance))


def boldest_safe(losses: Sequence[Sequence[float] | np.ndarray], tolerance: float, error: float) -> int | None:
    """Return the index of the last safe setting, of settings ordered from the most careful on; None if none is safe.

    Fixed-sequence testing (arXiv 2110.01052, section 2.3): the first setting whose risk may exceed the tolerance ends
    the search, so that the probability of calling an unsafe setting safe is at most ``error``, however many there are.
    The settings must have been chosen without these ``losses``, which have one row per setting.
    """
    safe = None
    for index, row in enumerate(losses):
        if risk_p_value(row, tolerance) > error:
            break
        safe = index
    return safe


def _divergence(one: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli distributions; both arguments are below 1."""
    first = 0.0 if one == 0 else one * math.log(one / other)
    return first + (1 - one) * math.log((1 - one) / (1 - other))

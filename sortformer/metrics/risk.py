"""Which of several settings keeps a risk low, with a guarantee: Learn then Test."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

__all__ = ["boldest_safe", "fewest_samples", "risk_p_value"]


def risk_p_value(losses: Sequence[float] | np.ndarray, tolerance: float) -> float:
    """Return the p-value of the hypothesis that the expected loss exceeds ``tolerance``: Hoeffding and Bentkus.

    Angelopoulos et al., "Learn then Test", arXiv 2110.01052, proposition 2. ``losses`` are of one or more independent
    samples, each between 0 and 1; the ``tolerance`` lies between 0 and 1.
    """
    found = np.asarray(losses, dtype=np.float64)
    mean, count = float(found.mean()), len(found)
    hoeffding = math.exp(-count * _divergence(min(mean, tolerance), tolerance))
    # The mean of twenty losses of 0.05 may come out a hair above 0.05, and must not round up to one more.
    bentkus = math.e * float(binom.cdf(math.ceil(count * mean - 1e-9), count, tolerance))
    return min(1.0, hoeffding, bentkus)


def fewest_samples(tolerance: float, error: float) -> int:
    """Return how many samples it takes to call anything safe: with fewer even losses of 0 may be chance.

    Both arguments lie between 0 and 1.
    """
    return math.ceil(math.log(error) / math.log1p(-tolerance))


def boldest_safe(losses: Sequence[Sequence[float] | np.ndarray], tolerance: float, error: float) -> int | None:
    """Return the index of the last setting that is safe, of settings that go from the most careful on; None for none.

    Fixed-sequence testing (arXiv 2110.01052, section 2.3): the first setting that may exceed the tolerance ends the
    search, so that the chance of calling a setting safe that is not stays below ``error``, whatever their number. The
    settings must have been chosen without these ``losses``, one row of them a setting.
    """
    safe = None
    for index, row in enumerate(losses):
        if risk_p_value(row, tolerance) > error:
            break
        safe = index
    return safe


def _divergence(one: float, other: float) -> float:
    """The Kullback-Leibler divergence of two coins."""
    first = 0.0 if one == 0 else one * math.log(one / other)
    return first + (0.0 if one == 1 else (1 - one) * math.log((1 - one) / (1 - other)))

"""Bootstrap confidence intervals of error rates over recordings."""

from collections.abc import Sequence

import numpy as np

__all__ = ["DRAWS", "ratio_interval"]

DRAWS = 2000
"""The number of bootstrap samples."""

_LEVEL = 0.95


def ratio_interval(errors: Sequence[float], totals: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of ``sum(errors) / sum(totals)``, with recordings resampled with replacement.

    The percentile bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13), over
    recordings, because errors within one are not independent. The seed is fixed: for the same number of recordings the
    samples are the same, so intervals of two systems can be compared. With few recordings the interval is too narrow. A
    sample without reference speech has the rate 1 if there are errors, as in ``DerCounts``.

    Args:
        errors: of each recording, at least one; may be differences of errors.
        totals: reference speech of each recording.
    """
    drawn = np.random.default_rng(0).integers(len(errors), size=(DRAWS, len(errors)))
    wrong, speech = (np.asarray(each, dtype=np.float64)[drawn].sum(axis=1) for each in (errors, totals))
    ratios = np.where(speech > 0, wrong / np.where(speech > 0, speech, 1.0), np.sign(wrong))
    low, high = np.percentile(ratios, [50 * (1 - _LEVEL), 50 * (1 + _LEVEL)])
    return float(low), float(high)

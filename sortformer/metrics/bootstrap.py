"""How much a rate depends on which recordings happened to be in the set."""

from collections.abc import Sequence

import numpy as np

__all__ = ["DRAWS", "ratio_interval"]

DRAWS = 2000
"""Resamples of the recordings."""

_LEVEL = 0.95


def ratio_interval(errors: Sequence[float], totals: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of ``sum(errors) / sum(totals)`` when recordings are drawn anew, with replacement.

    The percentile bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13), over
    recordings: what is within one is not independent. For the same number of recordings the draws are the same, so that
    intervals of two systems compare. With few recordings it is too narrow. A draw without any reference
    speech has the rate 1 if there are errors, as in ``DerCounts``.

    Args:
        errors: of each recording, at least one; may be differences of errors.
        totals: reference speech of each recording.
    """
    drawn = np.random.default_rng(0).integers(len(errors), size=(DRAWS, len(errors)))
    wrong, speech = (np.asarray(each, dtype=np.float64)[drawn].sum(axis=1) for each in (errors, totals))
    ratios = np.where(speech > 0, wrong / np.where(speech > 0, speech, 1.0), np.sign(wrong))
    low, high = np.percentile(ratios, [50 * (1 - _LEVEL), 50 * (1 + _LEVEL)])
    return float(low), float(high)

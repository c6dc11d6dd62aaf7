"""The least misassigned speech of two voices, over all stretches of one within the other."""

import itertools

import numpy as np

__all__ = ["least_astray"]


def least_astray(one: np.ndarray, other: np.ndarray) -> float:
    """Return the least misassigned speech if one of two voices (N,) has one stretch and the other the rest."""
    least = np.inf
    for start, end in itertools.combinations_with_replacement(range(len(one) + 1), 2):
        inside = (np.arange(len(one)) >= start) & (np.arange(len(one)) < end)
        for inner, outer in ((one, other), (other, one)):
            least = min(least, inner[~inside].sum() + outer[inside].sum())
    return float(least)

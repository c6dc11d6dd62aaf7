"""How much of what two voices say is at the other's time, by trying every stretch that may belong to one of them."""

import itertools

import numpy as np

__all__ = ["least_astray"]


def least_astray(one: np.ndarray, other: np.ndarray) -> float:
    """Return the least speech astray where one of two voices (N,) has a stretch and the other what lies around it."""
    least = np.inf
    for start, end in itertools.combinations_with_replacement(range(len(one) + 1), 2):
        inside = (np.arange(len(one)) >= start) & (np.arange(len(one)) < end)
        for inner, outer in ((one, other), (other, one)):
            least = min(least, inner[~inside].sum() + outer[inside].sum())
    return float(least)

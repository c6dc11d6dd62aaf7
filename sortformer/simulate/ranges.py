"""Log-uniform random numbers: each octave of a range is equally likely."""

import numpy as np

__all__ = ["log_uniform"]


def log_uniform(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    """Draw a number between two positive bounds, with a uniform logarithm."""
    return float(np.exp(rng.uniform(*np.log(bounds))))

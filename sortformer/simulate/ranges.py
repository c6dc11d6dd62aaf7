"""Numbers drawn from ranges of which each octave counts alike."""

import numpy as np

__all__ = ["log_uniform"]


def log_uniform(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    """Draw a number between two positive ones, its logarithm uniformly."""
    return float(np.exp(rng.uniform(*np.log(bounds))))

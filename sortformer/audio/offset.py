"""Samples around 0: what a recorder adds to all of them is no sound, and would be raised with the rest."""

import numpy as np

__all__ = ["centred"]

_POLE = 0.9995  # what swings more slowly than 1.3 Hz goes with it


def centred(samples: np.ndarray, state: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return samples (N,) of a recording without their offset, and the state for those that follow.

    y[n] = x[n] - x[n - 1] + 0.9995 y[n - 1] (the DC blocker of Smith, "Introduction to Digital Filters", 2007). Bit for
    bit the same in any cut. ``state`` is what came with the samples before, None at the beginning, before which a
    recording is taken for constant.
    """
    if not len(samples):
        return samples, state
    from scipy.signal import lfilter  # takes a quarter of a second

    one, pole = np.ones(1, samples.dtype), np.full(1, _POLE, samples.dtype)
    state = -samples[:1] if state is None else state
    return lfilter(np.r_[one, -one], np.r_[one, -pole], samples, zi=state)

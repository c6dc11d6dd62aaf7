"""Posteriors of voices per frame, summed over all sequences of voices."""

import itertools

import numpy as np

__all__ = ["voice_posteriors"]


def voice_posteriors(near: np.ndarray, stays: float) -> np.ndarray:
    """Return P(voice k in frame t
    all frames), (T, K), from the likelihoods ``near`` of each frame.

    The first voice is uniform; the next is the same with probability ``stays``, else uniformly any other.
    """
    frames, voices = near.shape
    total = np.zeros((frames, voices))
    for path in itertools.product(range(voices), repeat=frames):
        weight = 1.0
        for frame, voice in enumerate(path):
            weight *= near[frame, voice]
            if frame and voices > 1:
                weight *= stays if voice == path[frame - 1] else (1 - stays) / (voices - 1)
        for frame, voice in enumerate(path):
            total[frame, voice] += weight
    return total / total.sum(axis=1, keepdims=True)

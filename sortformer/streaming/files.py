"""Streaming of long recordings, in constant memory."""

from collections.abc import Iterable

import numpy as np

from sortformer.streaming.session import Session

__all__ = ["stream_probabilities"]


def stream_probabilities(session: Session, blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Return the probabilities (T, S) float32 of a recording given as blocks of samples (n,) at 16 kHz.

    The session is then ended. Only the result grows with the recording: 32 bytes for each frame of eight slots, 14 MB
    for ten hours.

    Raises:
        InputError: if a sample is NaN, infinite or far out of scale.
    """
    parts = [session.push(block).probs for block in blocks]
    return np.concatenate([*parts, session.flush().probs])

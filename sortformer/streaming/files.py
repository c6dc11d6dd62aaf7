"""Long recordings through the streaming path, in memory that does not grow with them."""

from collections.abc import Iterable

import numpy as np

from sortformer.config.stream import StreamConfig
from sortformer.model import Sortformer
from sortformer.streaming.session import Session

__all__ = ["stream_probabilities"]


def stream_probabilities(model: Sortformer, config: StreamConfig, blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Return the probabilities (T, S) float32 of a recording given as blocks of samples (n,) at 16 kHz.

    Only the result grows with the recording: 16 bytes for each frame of four slots, 2 MB for ten hours.

    Raises:
        ConfigError: if the model cannot stream with this configuration.
        InputError: if a sample is NaN, infinite or far out of scale.
    """
    session = Session(model, config)
    parts = [session.push(block).probs for block in blocks]
    return np.concatenate([*parts, session.flush().probs])

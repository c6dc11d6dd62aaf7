"""Blocks of samples that are pushed to a stream."""

from contextlib import suppress
from typing import Any

import numpy as np

from sortformer.audio.arrays import as_samples, float_pieces
from sortformer.audio.signal import checked, mixed
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["block_of"]


def block_of(samples: Any, sample_rate: int | None, uri: str, start_s: float) -> list[np.ndarray]:
    """Return a block, of any form that ``Session.push`` takes, as mono float32 pieces.

    Args:
        samples, sample_rate: as given to the session.
        uri, start_s: the stream, and its duration before the block, for messages.

    Raises:
        InputError: if it cannot be used.
    """
    if sample_rate is not None and sample_rate != SAMPLE_RATE:
        raise InputError(
            f"a session needs samples at {SAMPLE_RATE} Hz, got {sample_rate!r}: resample them first, with a "
            "resampler that keeps state between blocks (soxr.ResampleStream)"
        )
    with suppress(ValueError):  # ragged lists, which are refused below
        if 0 in np.shape(samples):
            return []
    pieces = mixed(float_pieces(as_samples(samples, block=True)), None, uri)
    return list(checked(pieces, SAMPLE_RATE, f"the block pushed to {uri} at {start_s:.2f} s"))

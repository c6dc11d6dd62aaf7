"""What a client sends, cut anywhere, as samples."""

import numpy as np
import soxr

from sortformer.audio.arrays import checked_rate
from sortformer.audio.encodings import encoding_named
from sortformer.grid import SAMPLE_RATE

__all__ = ["Samples"]


class Samples:
    """Bytes of mono sound on their way to a session; the cut may go through a sample, and changes nothing.

    Its length is how many float32 samples at 16 kHz there are to take.

    Raises:
        InputError: if there is no such encoding, or the rate, in Hz, is not one of sound.
    """

    def __init__(self, encoding: str = "s16le", rate: int | str = SAMPLE_RATE) -> None:
        self._encoding = encoding_named(encoding)
        rate = checked_rate(rate)
        self._resampler = None if rate == SAMPLE_RATE else soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32")
        self._rest = b""  # of a sample that was cut
        self._heard = bytearray()  # as float32: who sends a byte at a time shall not fill the memory with arrays

    def __len__(self) -> int:
        return len(self._heard) // 4

    def add(self, content: bytes, *, last: bool = False) -> None:
        """Take in more bytes, the ``last`` ones or not."""
        samples, self._rest = self._encoding.decoded(self._rest + content)
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples, last=last)
        self._heard += samples.tobytes()

    def take(self, count: int) -> np.ndarray:
        """Return the first ``count`` samples, (count,) float32, and keep the others."""
        taken = self._heard[: 4 * count]
        del self._heard[: 4 * count]
        return np.frombuffer(taken, np.float32)

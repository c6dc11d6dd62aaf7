"""Decoding and resampling of raw samples that arrive as bytes, such as from a client or a telephone line."""

import numpy as np
import soxr

from sortformer.audio.arrays import checked_rate
from sortformer.audio.raw import RawDecoder
from sortformer.grid import SAMPLE_RATE

__all__ = ["Samples"]


class Samples:
    """A buffer that decodes and resamples mono audio; messages may end anywhere, even inside a sample.

    Its length is the number of float32 samples at 16 kHz that are ready. The ``encoding`` defaults to 16-bit
    little-endian, and the ``rate`` to 16000 Hz, or 8000 for mu-law and A-law.

    Raises:
        InputError: if there is no such encoding, or the sample rate, in Hz, is not one of audio.
    """

    def __init__(self, encoding: str | None = None, rate: int | str | None = None) -> None:
        self._decoder = RawDecoder(encoding)
        rate = checked_rate(self._decoder.rate if rate is None else rate)
        self._resampler = None if rate == SAMPLE_RATE else soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32")
        self._heard = bytearray()  # float32, not a list of arrays: clients may send a byte at a time

    def __len__(self) -> int:
        return len(self._heard) // 4

    def add(self, content: bytes, *, last: bool = False) -> None:
        """Decode more bytes, the ``last`` ones or not.

        Raises:
            InputError: if they begin a recording, or no ``encoding`` was given, and they are not 16-bit samples.
        """
        samples = self._decoder.decode(content)
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples, last=last)
        self._heard += samples.tobytes()

    def take(self, count: int) -> np.ndarray:
        """Remove and return the first ``count`` samples, (count,) float32."""
        taken = self._heard[: 4 * count]
        del self._heard[: 4 * count]
        return np.frombuffer(taken, np.float32)

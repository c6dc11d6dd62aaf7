"""Decoding of the byte stream that a client sends into samples."""

import numpy as np
import soxr

from sortformer.audio.arrays import checked_rate
from sortformer.audio.encodings import encoding_named
from sortformer.audio.live import HEADER_BYTES, begins_recording
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["Samples"]


class Samples:
    """A buffer that decodes and resamples mono audio; messages may end anywhere, even inside a sample.

    Its length is the number of float32 samples at 16 kHz that are ready. The ``encoding`` defaults to 16-bit
    little-endian.

    Raises:
        InputError: if there is no such encoding, or the sample rate, in Hz, is not one of audio.
    """

    def __init__(self, encoding: str | None = None, rate: int | str = SAMPLE_RATE) -> None:
        self._encoding = encoding_named("s16le" if encoding is None else encoding)
        self._head = b"" if encoding is None else None  # the first bytes, until they rule out a file header
        rate = checked_rate(rate)
        self._resampler = None if rate == SAMPLE_RATE else soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32")
        self._rest = b""  # the beginning of an incomplete sample
        self._heard = bytearray()  # float32, not a list of arrays: clients may send a byte at a time

    def __len__(self) -> int:
        return len(self._heard) // 4

    def add(self, content: bytes, *, last: bool = False) -> None:
        """Decode more bytes, the ``last`` ones or not.

        Raises:
            InputError: if they start with the header of a recording, and no ``encoding`` was given.
        """
        if self._head is not None:
            self._head += content[:HEADER_BYTES]
            if begins_recording(self._head):
                raise InputError(
                    "the first bytes are the header of a recording, not samples: send what follows it, as 16-bit "
                    "samples, or the whole recording to /v1/diarize"
                )
            if len(self._head) >= HEADER_BYTES:
                self._head = None
        samples, self._rest = self._encoding.decoded(self._rest + content)
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples, last=last)
        self._heard += samples.tobytes()

    def take(self, count: int) -> np.ndarray:
        """Remove and return the first ``count`` samples, (count,) float32."""
        taken = self._heard[: 4 * count]
        del self._heard[: 4 * count]
        return np.frombuffer(taken, np.float32)

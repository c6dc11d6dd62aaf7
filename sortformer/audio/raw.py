"""Decoding of raw mono samples that arrive in pieces."""

import numpy as np

from sortformer.audio.encodings import ENCODINGS, encoding_named
from sortformer.audio.sniffing import HEAD_BYTES, begins_recording, first_bytes, is_noise, is_text
from sortformer.errors import InputError

__all__ = ["RawDecoder"]


class RawDecoder:
    """A decoder of raw samples, usually at ``rate`` Hz; pieces may end anywhere, even inside a sample.

    The ``encoding``, one of :data:`~sortformer.audio.encodings.ENCODINGS`, defaults to 16-bit little-endian. The first
    bytes after digital silence are checked: they must not be the header of a recording nor, unless the encoding is
    given, text or samples of another encoding.

    Raises:
        InputError: if there is no such encoding.
    """

    def __init__(self, encoding: str | None = None) -> None:
        self._encoding = encoding_named("s16le" if encoding is None else encoding)
        self.rate = self._encoding.rate
        self._given = encoding is not None
        self._head = b""  # the first bytes after silence
        self._rest = b""  # the beginning of an incomplete sample

    def decode(self, content: bytes) -> np.ndarray:
        """Return the samples that more bytes complete, (n,) float32.

        Raises:
            InputError: if the first bytes are not such samples.
        """
        content = self._rest + content
        samples, self._rest = self._encoding.decoded(content)
        if len(self._head) < HEAD_BYTES:
            self._head = first_bytes(self._head, content[: len(content) - len(self._rest)])
            self._check()
        return samples

    def _check(self) -> None:
        if begins_recording(self._head):
            raise InputError(
                "the first bytes are the header of a recording, not samples: send the samples that follow it, or "
                "diarize the recording as a file"
            )
        if self._given or len(self._head) < HEAD_BYTES:
            return
        if is_text(self._head):
            raise InputError("these bytes are text, not samples: check the program, or the URL, that should send audio")
        if is_noise(self._head):
            raise InputError(
                "these are not 16-bit samples, little-endian and mono: give their encoding "
                f"({', '.join(ENCODINGS)}), or convert them (ffmpeg -f s16le)"
            )

"""Decoding of raw mono samples that arrive in pieces."""

import numpy as np

from sortformer.audio.encodings import ENCODINGS, encoding_named
from sortformer.audio.sniffing import HEAD_BYTES, begins_recording, first_bytes, is_noise, is_text
from sortformer.errors import InputError

__all__ = ["RawDecoder"]


class RawDecoder:
    """A decoder of raw samples; pieces may end anywhere, even inside a sample.

    The ``encoding``, one of :data:`~sortformer.audio.encodings.ENCODINGS`, defaults to 16-bit little-endian. Unless it
    is given, the first bytes after digital silence are checked.

    Raises:
        InputError: if there is no such encoding.
    """

    def __init__(self, encoding: str | None = None) -> None:
        self._encoding = encoding_named("s16le" if encoding is None else encoding)
        self._given = encoding is not None
        self._head = b""  # the first bytes after silence, unless an encoding was given
        self._rest = b""  # the beginning of an incomplete sample

    def decode(self, content: bytes) -> np.ndarray:
        """Return the samples that more bytes complete, (n,) float32.

        Raises:
            InputError: if no ``encoding`` was given and the bytes are a recording, text or samples of another encoding.
        """
        content = self._rest + content
        samples, self._rest = self._encoding.decoded(content)
        if len(self._head) < HEAD_BYTES and not self._given:
            self._head = first_bytes(self._head, content[: len(content) - len(self._rest)])
            _check(self._head)
        return samples


def _check(head: bytes) -> None:
    if begins_recording(head):
        raise InputError(
            "the first bytes are the header of a recording, not samples: send what follows it, as 16-bit samples, or "
            "diarize the recording as a file"
        )
    if len(head) == HEAD_BYTES and is_text(head):
        raise InputError("these bytes are text, not samples: check the program, or the URL, that should send audio")
    if len(head) == HEAD_BYTES and is_noise(head):
        raise InputError(
            "these are not 16-bit samples, little-endian and mono: give their encoding "
            f"({', '.join(ENCODINGS)}), or convert them (ffmpeg -f s16le)"
        )

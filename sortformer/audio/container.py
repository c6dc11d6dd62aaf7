"""The common interface of the two decoders, and their exceptions."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np

from sortformer.errors import refusal

__all__ = ["AudioInfo", "AudioWarning", "Damaged", "Decoder", "NotDecodable", "Steady"]


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """The header information of a recording.

    ``duration_s`` is None if the header lacks it (a live recording), and an estimate for some MP3 files. Of several
    audio ``tracks``, such as languages, only one is read: the one that players choose, ``track``, counted from 1.
    """

    duration_s: float | None
    sample_rate: int
    channels: int
    codec: str
    track: int = 1
    tracks: int = 1


class AudioWarning(UserWarning):
    """A warning that a recording is usable only in part, or that its channels cancel each other out."""


class NotDecodable(Exception):
    """Raised if a decoder does not know the format, or can decode nothing; the message gives the decoder's reason."""


class Damaged(Exception):
    """Raised after the last good samples of a file that could not be decoded completely."""


class Decoder(Protocol):
    """An open file, decoded once, from its start or from the position of a seek."""

    @property
    def info(self) -> AudioInfo:
        """Duration, sample rate, channels and codec according to the header."""
        ...

    @property
    def promised_s(self) -> float | None:
        """The duration in seconds that a complete file must have, or None if the header promises none."""
        ...

    def seek(self, sample: int) -> int:
        """Continue from a sample, counted at the file's own rate, or from an earlier one; return which."""
        ...

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield (n, channels) float32 pieces of any length; if not all can be decoded, raise ``Damaged`` at the end."""
        ...

    def close(self) -> None:
        """Close the decoder; the underlying file object stays open."""
        ...


class Steady:
    """A file whose ``read`` and ``seek`` raise no OSError, for C libraries, which would print exceptions and lose them.

    A seek to an invalid position, as from a broken header, returns -1, as in C, and does not move. A read error ends
    the file; ``check`` raises it afterwards.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._fault: OSError | None = None
        self.tell, self.seekable = file.tell, file.seekable

    def read(self, count: int) -> bytes:
        """Return up to ``count`` bytes; none at the end or after an error."""
        try:
            return self._file.read(count)
        except OSError as error:
            self._fault = error
            return b""

    def check(self) -> None:
        """Raise ``Damaged`` if a read failed."""
        if self._fault is not None:
            raise Damaged(refusal(self._fault)) from self._fault

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Seek to a position and return it, or -1 if it is invalid."""
        try:
            return self._file.seek(offset, whence)
        except (ValueError, OSError):
            return -1

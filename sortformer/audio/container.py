"""What the two decoders have in common: the values that they give and the ways in which they fail."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np

from sortformer.errors import refusal

__all__ = ["AudioInfo", "AudioWarning", "Damaged", "Decoder", "NotDecodable", "Steady"]


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """What the header of a recording says about it.

    ``duration_s`` is None where the header does not know (a live recording), and an estimate for some MP3 files.
    """

    duration_s: float | None
    sample_rate: int
    channels: int
    codec: str


class AudioWarning(UserWarning):
    """A recording that can be used only in part; the message says how much of it."""


class NotDecodable(Exception):
    """This decoder does not know the format; the message is the decoder's own."""


class Damaged(Exception):
    """Raised after the last good samples of a file in which something could not be decoded."""


class Decoder(Protocol):
    """An open file, decoded once, from its start or from where it was sent to."""

    @property
    def info(self) -> AudioInfo:
        """Duration, rate, channels and codec according to the header."""
        ...

    @property
    def promised_s(self) -> float | None:
        """Seconds that a complete file must hold, or None where the header does not promise anything."""
        ...

    def seek(self, sample: int) -> int:
        """Go on from a sample of the file's own rate, or from one before it; return from which."""
        ...

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield (n, channels) float32 pieces of any length; raise ``Damaged`` after the last good one."""
        ...

    def close(self) -> None:
        """Free the decoder; the file object underneath stays open."""
        ...


class Steady:
    """A file that stays where it is when a broken header sends it to an impossible place, and says so as C does: -1.

    Where the system cannot read on, it ends, and ``check`` says why. An error raised here could not pass through the C
    library: it would be printed to the terminal, and lost.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._fault: OSError | None = None
        self.tell, self.seekable = file.tell, file.seekable

    def read(self, count: int) -> bytes:
        """Return up to ``count`` bytes, and none at the end."""
        try:
            return self._file.read(count)
        except OSError as error:
            self._fault = error
            return b""

    def check(self) -> None:
        """Raise ``Damaged`` if not all could be read."""
        if self._fault is not None:
            raise Damaged(refusal(self._fault)) from self._fault

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place and return it, or -1."""
        try:
            return self._file.seek(offset, whence)
        except (ValueError, OSError):
            return -1

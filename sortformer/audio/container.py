"""What the two decoders have in common: the values that they give and the ways in which they fail."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

__all__ = ["AudioInfo", "AudioWarning", "Damaged", "Decoder", "NotDecodable"]


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

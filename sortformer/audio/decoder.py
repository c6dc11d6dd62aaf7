"""The common interface of the two decoders, and their exceptions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sortformer.warned import SortformerWarning

__all__ = ["AudioInfo", "AudioWarning", "Damaged", "Decoder", "NotDecodable"]


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """The header information of a recording.

    ``duration_s`` is None if it is unknown (a live recording). It is ``estimated``, and may be far off, if the format
    does not store it, like AAC and AMR without a container, and some MP3. Of several audio ``tracks``, such as
    languages, only one is read: the one that players choose, ``track``, counted from 1.
    """

    duration_s: float | None
    sample_rate: int
    channels: int
    codec: str
    track: int = 1
    tracks: int = 1
    estimated: bool = False


class AudioWarning(SortformerWarning):
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

"""Encodings of raw mono samples without a header, by FFmpeg's names."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sortformer.audio.arrays import float_pieces
from sortformer.audio.signal import joined
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["ENCODINGS", "Encoding", "encoding_named"]


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """A sample encoding: the dtype of its numbers and, where these are codes, the table of their values.

    ``rate`` is its usual sample rate in Hz: ITU-T G.711, which defines mu-law and A-law, has 8000.
    """

    kind: np.dtype
    table: np.ndarray | None = None
    rate: int = SAMPLE_RATE

    def decoded(self, content: bytes) -> tuple[np.ndarray, bytes]:
        """Return the complete samples as (n,) float32, integers scaled to [-1, 1), and the remaining bytes."""
        whole = len(content) - len(content) % self.kind.itemsize
        numbers, rest = np.frombuffer(content[:whole], self.kind), content[whole:]
        if self.table is not None:
            numbers = self.table[numbers]
        pieces = float_pieces(numbers[:, None])
        return joined(piece[:, 0] for piece in pieces), rest


def _mu_law() -> np.ndarray:
    """Return the 16-bit values of the 256 codes of mu-law: ITU-T G.711, table 2, with each bit of a code inverted."""
    code = ~np.arange(256) & 0xFF
    size = (((code & 0x0F) << 3) + 0x84 << (code >> 4 & 7)) - 0x84
    return np.where(code & 0x80, -size, size).astype(np.int16)


def _a_law() -> np.ndarray:
    """Return the 16-bit values of the 256 codes of A-law: ITU-T G.711, table 1, with every other bit inverted."""
    code = np.arange(256) ^ 0x55
    exponent, fraction = code >> 4 & 7, (code & 0x0F) << 4
    size = np.where(exponent, fraction + 0x108 << np.maximum(exponent - 1, 0), fraction + 8)
    return np.where(code & 0x80, size, -size).astype(np.int16)


ENCODINGS: Mapping[str, Encoding] = {
    "s16le": Encoding(np.dtype("<i2")),
    "f32le": Encoding(np.dtype("<f4")),
    "mulaw": Encoding(np.dtype("u1"), _mu_law(), 8_000),
    "alaw": Encoding(np.dtype("u1"), _a_law(), 8_000),
}


def encoding_named(name: str) -> Encoding:
    """Return the encoding of that name.

    Raises:
        InputError: if the name is unknown.
    """
    if name not in ENCODINGS:
        raise InputError(f"there is no sample encoding {name!r}; choose from {', '.join(ENCODINGS)}")
    return ENCODINGS[name]

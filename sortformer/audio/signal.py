"""Mixing, checks and resampling: from pieces of any rate and channel count to mono at 16 kHz, however they are cut."""

from collections.abc import Iterable, Iterator

import numpy as np
import soxr

from sortformer.errors import InputError, counted
from sortformer.grid import SAMPLE_RATE

__all__ = [
    "FASTEST_RATE",
    "INAUDIBLE",
    "SLOWEST_RATE",
    "check_channel",
    "checked",
    "joined",
    "mixed",
    "rechunked",
    "resampled",
]

SLOWEST_RATE, FASTEST_RATE = 1_000, 768_000  # in Hz; a rate outside is a mistake or a broken header
LOUDEST = 64.0  # float audio spans -1 to 1; more than 36 dB above that, the numbers were scaled as integers
INAUDIBLE = 2.0**-15  # one step of 16-bit audio: a recording that never exceeds it is digital silence


def mixed(pieces: Iterable[np.ndarray], channel: int | None, name: str) -> Iterator[np.ndarray]:
    """Yield (n,) pieces: the mean of the channels of each (n, channels) piece, or one channel, counted from 1.

    Raises:
        InputError: if there is no such channel.
    """
    for piece in pieces:
        count = piece.shape[1]
        if channel is not None:
            check_channel(channel, count, name)
            yield piece[:, channel - 1]
            continue
        total = piece[:, 0]
        for other in range(1, count):  # in a fixed order, so that the cut into pieces does not change a single bit
            total = total + piece[:, other]
        yield total / np.float32(count) if count > 1 else total


def joined(pieces: Iterable[np.ndarray]) -> np.ndarray:
    """Return (n,) float32 pieces, of which there may be none, as one array, which is all that memory holds."""
    held = bytearray()  # it grows in place, while NumPy copies arrays that grow from its version 2.5 on
    for piece in pieces:
        held += piece.tobytes()
    return np.frombuffer(held, np.float32)


def check_channel(channel: int, count: int, name: str) -> None:
    """Check that a recording of ``count`` channels has a ``channel``, counted from 1.

    Raises:
        InputError: if it does not.
    """
    if channel > count:
        raise InputError(f"{name} has {counted(count, 'channel')}: channel {channel} does not exist")


def checked(pieces: Iterable[np.ndarray], rate: int, name: str, start: int = 0) -> Iterator[np.ndarray]:
    """Yield the (n,) pieces unchanged; the first begins at the sample ``start``.

    Raises:
        InputError: at the first sample that is NaN, infinite, or far outside the scale of float audio.
    """
    for piece in pieces:
        if len(piece) and not np.abs(piece).max() <= LOUDEST:
            at = int(np.argmax(~(np.abs(piece) <= LOUDEST)))
            value, time_s = float(piece[at]), (start + at) / rate
            if np.isfinite(value):
                raise InputError(
                    f"{name} reaches {value:.0f} at {time_s:.3f} s, but float samples range from -1 to 1: "
                    "divide them by full scale (32768 for 16 bits)"
                )
            kind = "not a number (NaN)" if np.isnan(value) else "infinite"
            raise InputError(
                f"a sample of {name} is {kind} at {time_s:.3f} s: repair or export the recording again, or correct the "
                "encoding of raw samples"
            )
        start += len(piece)
        yield piece


def resampled(pieces: Iterable[np.ndarray], rate: int) -> Iterator[np.ndarray]:
    """Yield (n,) float32 pieces at 16 kHz; N samples become round(N * 16000 / rate), plus or minus one.

    The samples are the same, bit for bit, for any cut of the input into pieces (soxr, high quality).
    """
    if rate == SAMPLE_RATE:
        yield from pieces
        return
    stream = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32")
    for piece in pieces:
        yield stream.resample_chunk(np.ascontiguousarray(piece))
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)


def rechunked(pieces: Iterable[np.ndarray], length: int) -> Iterator[np.ndarray]:
    """Yield the same samples in pieces of ``length``, the last one shorter."""
    waiting: list[np.ndarray] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += len(piece)
        if count < length:
            continue
        whole = np.concatenate(waiting)
        cut = count - count % length
        yield from np.split(whole[:cut], range(length, cut, length))
        waiting, count = [whole[cut:]], count - cut
    if count:
        yield np.concatenate(waiting)

"""Audio in memory: numpy arrays, and tensors through the array protocol."""

import operator
import reprlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sortformer.audio.signal import FASTEST_RATE, SLOWEST_RATE
from sortformer.errors import InputError

__all__ = ["as_samples", "checked_rate", "float_pieces", "is_array"]

MAX_CHANNELS = 64
_FEW_CHANNELS = 8  # up to this number, a block of a stream may have fewer samples than channels
PIECE_SAMPLES = 1 << 16
FULL_SCALE = {"int8": 2.0**7, "int16": 2.0**15, "int32": 2.0**31}
# RMS of 8-bit samples. Speech with peaks at full scale has 0.26 at most, in 35 recordings of meetings and of reading;
# their codes in mu-law or A-law, and their signed 8-bit or 16-bit samples, as bytes taken for samples, 0.507 or more.
_LOUDEST_8_BIT = 0.5
_EVERY = 17  # one of so many samples suffices; odd, so that both channels, and both bytes, are among them


def is_array(source: Any) -> bool:
    """Return whether the source offers numpy's array protocol."""
    return hasattr(source, "__array__") or hasattr(source, "__array_interface__")


def checked_rate(sample_rate: Any) -> int:
    """Return the sample rate of an array in Hz.

    Raises:
        InputError: if it is missing, not a whole number of Hz, or out of range.
    """
    if sample_rate is None:
        raise InputError("an array has no sample rate of its own: pass sample_rate= in Hz, for example 16000")
    try:
        rate = operator.index(int(sample_rate) if float(sample_rate).is_integer() else sample_rate)
    except (TypeError, ValueError, OverflowError):  # OverflowError: an integer larger than any float
        raise InputError(f"sample_rate must be a whole number of Hz, got {reprlib.repr(sample_rate)}") from None
    if not SLOWEST_RATE <= rate <= FASTEST_RATE:
        raise InputError(f"sample_rate must be between {SLOWEST_RATE} and {FASTEST_RATE} Hz, got {sample_rate!r}")
    return rate


def as_samples(source: Any, *, block: bool = False) -> np.ndarray:
    """Return an array as (samples, channels), a view where possible, in its own dtype.

    Of two axes, the one with at most 64 entries is the channels. If neither or both are that short, the array is
    refused as ambiguous (a usable recording has more than 64 samples anyway). In a ``block`` of a stream a second axis
    that short is always the channels; a block with more than 8 channels and fewer samples than channels is refused,
    because it is probably transposed.

    Raises:
        InputError: on other shapes, on empty arrays, on bytes, on dtypes without a scale (int64, bool, complex), and,
            except in a block, on int32 that holds 16-bit samples and uint8 that holds codes or bytes of others.
    """
    if isinstance(source, bytes | bytearray) or (isinstance(source, memoryview) and source.format in "Bbc"):
        raise InputError("bytes have no sample type: pass numpy.frombuffer(data, 'int16'), for example")
    try:
        array: np.ndarray = np.asarray(source)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"the audio, a {type(source).__name__}, cannot be read as an array ({error}): "
            "pass a detached float32 tensor in CPU memory, or a numpy array"
        ) from error
    if array.dtype.kind != "f" and array.dtype.name not in FULL_SCALE and array.dtype != np.uint8:
        raise InputError(f"an array of {array.dtype} has no full scale: pass float in [-1, 1], int16, int32 or uint8")
    if array.size == 0:
        raise InputError(f"the audio array is empty (shape {array.shape}): pass at least 0.1 s of samples")
    if not block:
        _check_scale(array)
    if array.ndim == 1:
        return array[:, None]
    if array.ndim != 2:
        raise InputError(f"an audio array must have the shape (samples,) or (samples, channels), got {array.shape}")
    channel_axes = [axis for axis in (0, 1) if array.shape[axis] <= MAX_CHANNELS]
    if block and 1 in channel_axes:
        if len(array) < array.shape[1] and array.shape[1] > _FEW_CHANNELS:
            raise InputError(
                f"a block of shape {array.shape} has fewer samples than channels: pass (samples, channels), or more "
                "samples at a time"
            )
        return array
    if len(channel_axes) != 1:
        raise InputError(
            f"the channel axis of an audio array of shape {array.shape} is ambiguous: "
            f"one axis must have at most {MAX_CHANNELS} entries and the other more"
        )
    return array if channel_axes == [1] else array.T


def _check_scale(array: np.ndarray) -> None:
    """Refuse 16-bit samples in int32, which would be 96 dB too low, and so silence, and bytes that are no samples.

    24-bit samples may be as low in a muted channel, but the lowest eight of their 32 bits are zero.
    """
    if array.dtype == np.uint8:
        rms = float(np.sqrt(np.mean(np.square(array.ravel("K")[::_EVERY] - 128.0)))) / 128
        if rms > _LOUDEST_8_BIT:
            raise InputError(
                f"the RMS of these uint8 samples is {rms:.2f} of full scale, too much for 8-bit PCM, in which silence "
                "is 128: if they are telephone codes (mu-law, A-law), or bytes of other samples, decode them first"
            )
    if array.dtype != np.int32:
        return
    peak = max(int(array.max()), -int(array.min()))
    if 0 < peak <= FULL_SCALE["int16"] and (array & 0xFF).any():
        raise InputError(
            f"the largest of these int32 samples is {peak}, full scale is 2147483648: if they are 16-bit samples, "
            "pass them as int16"
        )


def float_pieces(samples: np.ndarray) -> Iterator[np.ndarray]:
    """Yield (n, channels) float32 pieces of (samples, channels); integers are scaled to [-1, 1), uint8 around 128."""
    for start in range(0, len(samples), PIECE_SAMPLES):
        piece = samples[start : start + PIECE_SAMPLES]
        if piece.dtype.kind == "f":
            with np.errstate(over="ignore"):  # values beyond float32 become infinite, and are refused later
                piece = piece.astype(np.float32)
            yield piece
        elif piece.dtype == np.uint8:
            yield (piece.astype(np.float32) - 128.0) / 128.0
        else:
            yield (piece / FULL_SCALE[piece.dtype.name]).astype(np.float32)

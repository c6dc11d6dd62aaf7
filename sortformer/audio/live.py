"""Audio as it comes: raw PCM from a pipe, and the microphone; both as blocks at 16 kHz."""

import contextlib
import os
import queue
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from sortformer.audio.arrays import checked_rate
from sortformer.audio.signal import resampled
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["microphone", "pcm"]

_BLOCK_BYTES = 1 << 15
_HEADERS = (b"RIFF", b"RF64", b"riff", b"FORM", b"fLaC", b"OggS", b"ID3", b".snd", b"caff", b"\x1aE\xdf\xa3")
_HEAD_BYTES = 8


def pcm(pipe: BinaryIO, rate: int = SAMPLE_RATE) -> Iterator[np.ndarray]:
    """Yield (n,) float32 blocks at 16 kHz from raw mono samples (16-bit, little-endian), each as soon as it is there.

    Raises:
        InputError: if the rate is not one of sound, nothing comes, or it begins like a recording with a header.
    """
    yield from resampled(_samples(pipe), checked_rate(rate))


def _samples(pipe: BinaryIO) -> Iterator[np.ndarray]:
    with contextlib.suppress(OSError):  # what is no pipe
        os.set_blocking(pipe.fileno(), True)  # else a pause would be taken for the end
    read = getattr(pipe, "read1", pipe.read)  # what is there, without waiting for more
    content, odd, heard = read(_BLOCK_BYTES), b"", False
    while 0 < len(content) < _HEAD_BYTES and (more := read(_BLOCK_BYTES)):
        content += more
    if content.startswith(_HEADERS) or content[4:8] == b"ftyp":  # MP4
        raise InputError(
            "a stream takes raw samples, but this is a recording with a header: give its file instead, or decode it "
            "first (ffmpeg -i - -f s16le -ac 1 -ar 16000 -)"
        )
    while content:
        content = odd + content
        whole = len(content) - len(content) % 2
        odd, heard = content[whole:], heard or whole > 0
        yield (np.frombuffer(content[:whole], "<i2") / 32_768.0).astype(np.float32)
        content = read(_BLOCK_BYTES)
    if not heard:
        raise InputError("no samples came through the pipe: check the program that should send them")


def microphone(rate: int = SAMPLE_RATE) -> Iterator[np.ndarray]:
    """Yield (n,) float32 blocks at 16 kHz from the default microphone, which is opened at a rate, until it goes away.

    Raises:
        InputError: if the rate is not one of sound, there is no microphone, or sounddevice or PortAudio is absent.
    """
    yield from resampled(_recorded(checked_rate(rate)), rate)


def _recorded(rate: int) -> Iterator[np.ndarray]:
    try:
        import sounddevice  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError("the microphone needs the package sounddevice: pip install sounddevice") from error
    except OSError as error:
        raise InputError("the microphone needs PortAudio: install it (on Debian and Ubuntu, libportaudio2)") from error
    heard: queue.SimpleQueue[np.ndarray | None] = queue.SimpleQueue()
    try:
        stream = sounddevice.InputStream(
            rate,
            channels=1,
            dtype="float32",
            callback=lambda samples, *_: heard.put(samples[:, 0].copy()),
            finished_callback=lambda: heard.put(None),
        )
        with stream:
            while (block := heard.get()) is not None:
                yield block
    except sounddevice.PortAudioError as error:
        raise InputError(f"the microphone cannot be opened ({error}): check that there is one, and --rate") from error

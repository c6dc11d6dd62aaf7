"""Live audio, through a pipe or from the microphone, as blocks at 16 kHz."""

import contextlib
import os
import queue
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from sortformer.audio.arrays import checked_rate
from sortformer.audio.decoder import NotDecodable
from sortformer.audio.encodings import ENCODINGS
from sortformer.audio.ffmpeg import FfmpegDecoder
from sortformer.audio.files import name_of
from sortformer.audio.raw import RawDecoder
from sortformer.audio.reading import SHORTEST_S, signal_of
from sortformer.audio.signal import check_channel, resampled
from sortformer.audio.sniffing import HEAD_BYTES, begins_recording, is_noise, is_text
from sortformer.audio.sources import recording_of
from sortformer.errors import InputError, refusal
from sortformer.extras import require_extra
from sortformer.grid import SAMPLE_RATE

__all__ = ["microphone", "piped"]

_BLOCK_BYTES = 1 << 15


class _Pipe:
    """The bytes of a pipe: a read returns what is available, blocks if there is nothing, and is empty only at the end.

    An interrupt or a read error ends them too. It is kept in ``ended_by``, because no exception can pass through FFmpeg
    from its read callback.
    """

    def __init__(self, pipe: BinaryIO) -> None:
        with contextlib.suppress(OSError, AttributeError):  # not a real pipe, or Python 3.11 on Windows
            os.set_blocking(pipe.fileno(), True)  # else a pause would be taken for the end
        self._read = getattr(pipe, "read1", pipe.read)
        self.ended_by: KeyboardInterrupt | InputError | None = None
        self.head = b""  # the leading bytes, until ``read`` returns them
        try:
            while len(self.head) < HEAD_BYTES and (more := self._read(_BLOCK_BYTES)):
                self.head += more
        except OSError as error:
            raise _failed(error) from error

    def read(self, count: int = _BLOCK_BYTES) -> bytes:
        if self.head:
            head, self.head = self.head[:count], self.head[count:]
            return head
        try:
            return self._read(count)
        except KeyboardInterrupt as interrupt:
            self.ended_by = interrupt
        except OSError as error:
            self.ended_by = _failed(error)
        return b""

    def seekable(self) -> bool:
        return False


def piped(
    pipe: BinaryIO, rate: int | None = None, channel: int | None = None, encoding: str | None = None
) -> Iterator[np.ndarray]:
    """Yield the audio of a pipe as (n,) float32 blocks at 16 kHz, each as soon as it arrives.

    Data with the header of a recording, or that would be noise as samples, is decoded by FFmpeg as it arrives (WAV,
    FLAC, Ogg, WebM, MP3, AAC, MPEG-TS); its channels are averaged, or one is picked, a ``channel`` counted from 1. All
    other data is raw samples: 16-bit, little-endian, mono, at 16 kHz unless a ``rate`` is given. With an ``encoding``,
    one of :data:`~sortformer.audio.encodings.ENCODINGS`, all data is raw samples, unless it begins as a recording does;
    mu-law and A-law are at 8 kHz unless a ``rate`` is given.

    Raises:
        InputError: if the encoding is unknown, or given for a recording; if the rate is out of range, or given for data
            that is not raw samples; if a channel is given for raw samples, or does not exist; if the pipe sends less
            than 0.1 s, text, a recording that can only be read from a file, or samples of another kind; if the pipe
            fails, once the audio before has been yielded.

    Warns:
        AudioWarning: if parts of a recording are damaged.
        SortformerWarning: if a recording has several audio tracks, of which only one is read.
    """
    decoder = RawDecoder(encoding)
    source = _Pipe(pipe)
    head = source.head[:HEAD_BYTES]
    if encoding is None and is_text(head):
        raise InputError(
            "the data from this pipe is text, not audio: check the program, or the URL, that should send audio"
        )
    if encoding is not None and begins_recording(head):
        raise InputError(
            "an encoding is for raw samples, and the data from this pipe is a recording, by its header: leave it out"
        )
    recorded = encoding is None and (begins_recording(head) or is_noise(head))
    if recorded and rate is not None:
        raise InputError(
            "a rate is for 16-bit samples, which these are not: a recording has its own rate, so leave it out; for "
            f"samples in another encoding, give that ({', '.join(ENCODINGS)}), or convert them (ffmpeg -f s16le)"
        )
    if not recorded and channel is not None:
        raise InputError(
            "a channel is for recordings, and these are raw samples, which must be mono: leave it out, and send "
            "only the samples of that channel"
        )
    rate = checked_rate(decoder.rate if rate is None else rate)
    if recorded:
        blocks = _recording(source, name_of(pipe), channel)
    else:
        blocks = resampled(_samples(source, decoder, rate), rate)
    try:
        for block in blocks:
            if source.ended_by is not None:
                break  # the rest is the last milliseconds, cut at an arbitrary point
            yield block
    finally:
        if source.ended_by is not None:
            raise source.ended_by


def _failed(error: OSError) -> InputError:
    return InputError(f"reading from this pipe failed ({refusal(error)}): check the program that writes to it")


def _recording(source: _Pipe, name: str, channel: int | None) -> Iterator[np.ndarray]:
    try:
        found = FfmpegDecoder(source)
    except NotDecodable as error:
        raise InputError(
            f"the data from this pipe is neither 16-bit samples nor a recording that can be streamed ({error}): give "
            f"its file instead, or decode it first (ffmpeg -i - -f s16le -ac 1 -ar 16000 -); for samples in another "
            f"encoding, give that ({', '.join(ENCODINGS)})"
        ) from error
    with contextlib.closing(found):
        if channel is not None:
            check_channel(channel, found.info.channels, name)
        blocks = signal_of(recording_of(found, name), channel)
        try:
            first = next(blocks)
        except InputError as error:
            raise InputError(f"{error}, or give its file: in a pipe, the index of an MP4 may come too late") from error
        yield first
        yield from blocks


def _samples(source: _Pipe, decoder: RawDecoder, rate: int) -> Iterator[np.ndarray]:
    count = 0
    while content := source.read():
        samples = decoder.decode(content)
        count += len(samples)
        yield samples
    if count < SHORTEST_S * rate:
        came = f"only {count} samples, less than {SHORTEST_S} s," if count else "no samples"
        raise InputError(f"{came} were received from the pipe: check the program that should send them")


def microphone(rate: int = SAMPLE_RATE, device: str | None = None) -> Iterator[np.ndarray]:
    """Yield (n,) float32 blocks at 16 kHz from a microphone, opened at ``rate``, until it is disconnected.

    ``device`` is its number, or a part of its name that no other has (None: the default one).

    Raises:
        InputError: if the rate is out of range, there is no such microphone, or sounddevice or PortAudio is missing.
    """
    yield from resampled(_recorded(checked_rate(rate), device), rate)


def _recorded(rate: int, device: str | None) -> Iterator[np.ndarray]:
    require_extra("the microphone", "mic", "sounddevice")
    try:
        import sounddevice  # pyright: ignore[reportMissingImports]
    except OSError as error:
        raise InputError("the microphone needs PortAudio: install it (on Debian and Ubuntu, libportaudio2)") from error
    heard: queue.SimpleQueue[np.ndarray | None] = queue.SimpleQueue()
    try:
        stream = sounddevice.InputStream(
            rate,
            device=int(device) if device and device.isdecimal() else device,
            channels=1,
            dtype="float32",
            callback=lambda samples, *_: heard.put(samples[:, 0].copy()),
            finished_callback=lambda: heard.put(None),
        )
        with stream:
            while (block := heard.get()) is not None:
                yield block
    except ValueError as error:  # of a name that none has, or several have
        raise InputError(f"there is no single microphone {device!r}; choose one of {_inputs(sounddevice)}") from error
    except sounddevice.PortAudioError as error:
        raise InputError(
            f"the microphone cannot be opened ({error}): check its connection, and --rate; "
            f"there are {_inputs(sounddevice)}"
        ) from error


def _inputs(sounddevice: Any) -> str:
    """Return the numbers and names of the microphones."""
    found = [(number, each) for number, each in enumerate(sounddevice.query_devices()) if each["max_input_channels"]]
    return ", ".join(f"{number} ({each['name']})" for number, each in found) or "none"

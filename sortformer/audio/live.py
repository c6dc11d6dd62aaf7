"""Live audio, through a pipe or from the microphone, as blocks at 16 kHz."""

import codecs
import contextlib
import os
import queue
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from sortformer.audio.arrays import checked_rate
from sortformer.audio.container import NotDecodable
from sortformer.audio.encodings import ENCODINGS, Encoding, encoding_named
from sortformer.audio.ffmpeg import FfmpegDecoder
from sortformer.audio.files import name_of
from sortformer.audio.reading import SHORTEST_S, signal_of
from sortformer.audio.signal import check_channel, resampled
from sortformer.errors import InputError, refusal
from sortformer.extras import require_extra
from sortformer.grid import SAMPLE_RATE

__all__ = ["HEADER_BYTES", "begins_recording", "microphone", "piped"]

_BLOCK_BYTES = 1 << 15
_HEADERS = (b"RIFF", b"RF64", b"riff", b"FORM", b"fLaC", b"OggS", b"ID3", b".snd", b"caff", b"\x1aE\xdf\xa3")
HEADER_BYTES = 8
"""How many leading bytes are enough to recognise a recording."""

_HEAD_BYTES = 2_000  # leading bytes that decide the kind of the data, also when more are available
_TEXT_BYTES = 8  # fewer bytes of samples may look like text by chance
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
# Data so loud, and so uncorrelated between neighbours, is not 16-bit audio: full-scale music has half the RMS, and is
# smooth. Nor is data whose low and high bytes have such similar histograms of upper nibbles: they overlap by 0.91 or
# more in mu-law and A-law speech, by 0.88 at most in 16-bit audio so loud, even amplified 50 times and clipped.
_NOISE_RMS, _NOISE_CORRELATION, _BYTES_ALIKE = 0.3, 0.3, 0.9
_FEWEST_BYTES = 1_000  # fewer are too few for these histograms


class _Pipe:
    """The bytes of a pipe: a read returns what is available, blocks if there is nothing, and is empty only at the end.

    An interrupt or a read error ends them too. It is kept in ``ended_by``, because no exception can pass through FFmpeg
    from its read callback.
    """

    def __init__(self, pipe: BinaryIO) -> None:
        with contextlib.suppress(OSError):  # not a real pipe
            os.set_blocking(pipe.fileno(), True)  # else a pause would be taken for the end
        self._read = getattr(pipe, "read1", pipe.read)
        self.ended_by: KeyboardInterrupt | InputError | None = None
        self.head = b""  # the leading bytes, until ``read`` returns them
        try:
            while len(self.head) < _HEAD_BYTES and (more := self._read(_BLOCK_BYTES)):
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
    one of :data:`~sortformer.audio.encodings.ENCODINGS`, any data is read as raw samples.

    Raises:
        InputError: if the encoding is unknown; if the rate is out of range, or given for data that is not raw samples;
            if a channel is given for raw samples, or does not exist; if the pipe sends less than 0.1 s, text, a
            recording that can only be read from a file, or samples of another kind; if the pipe fails, once the audio
            before has been yielded.

    Warns:
        AudioWarning: if parts of a recording are damaged.
    """
    kind = encoding_named("s16le" if encoding is None else encoding)
    source = _Pipe(pipe)
    head = source.head[:_HEAD_BYTES] if encoding is None else b""
    if _is_text(head):
        raise InputError(
            "the data from this pipe is text, not audio: check the program, or the URL, that should send audio"
        )
    recorded = begins_recording(head) or _is_noise(head)
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
    rate = checked_rate(SAMPLE_RATE if rate is None else rate)
    try:
        for block in (
            _recording(source, name_of(pipe), channel) if recorded else resampled(_samples(source, kind, rate), rate)
        ):
            if source.ended_by is not None:
                break  # the rest is the last milliseconds, cut at an arbitrary point
            yield block
    finally:
        if source.ended_by is not None:
            raise source.ended_by


def _failed(error: OSError) -> InputError:
    return InputError(f"reading from this pipe failed ({refusal(error)}): check the program that writes to it")


def begins_recording(head: bytes) -> bool:
    """Return whether bytes begin with the header of a WAV, AIFF, AU, CAF, FLAC, Ogg, WebM, MP4 or MP3 with ID3."""
    return head.startswith(_HEADERS) or head[4:8] == b"ftyp"


def _is_text(head: bytes) -> bool:
    """Return whether bytes are UTF-8 without control characters, unlike 16-bit audio, whether quiet or loud."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)  # incremental: the last character may be cut
    except UnicodeDecodeError:
        return False
    return len(head) >= _TEXT_BYTES and not _CONTROL.search(text)


def _is_noise(head: bytes) -> bool:
    """Return whether bytes are not 16-bit samples, but in another encoding, or compressed audio from its middle on."""
    samples = np.frombuffer(head[: len(head) // 2 * 2], "<i2") / 32_768.0
    power = np.dot(samples, samples)
    if power <= _NOISE_RMS**2 * len(samples):
        return False
    if np.dot(samples[1:], samples[:-1]) < _NOISE_CORRELATION * power:
        return True
    lower, upper = (
        np.bincount(np.frombuffer(head, "u1")[side : 2 * len(samples) : 2] >> 4, minlength=16) for side in (0, 1)
    )
    return len(head) >= _FEWEST_BYTES and bool(np.minimum(lower, upper).sum() > _BYTES_ALIKE * len(samples))


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
        blocks = signal_of(found, name, channel)
        try:
            first = next(blocks)
        except InputError as error:
            raise InputError(f"{error}, or give its file: in a pipe, the index of an MP4 may come too late") from error
        yield first
        yield from blocks


def _samples(source: _Pipe, kind: Encoding, rate: int) -> Iterator[np.ndarray]:
    cut, count = b"", 0
    while content := source.read():
        samples, cut = kind.decoded(cut + content)
        count += len(samples)
        yield samples
    if count < SHORTEST_S * rate:
        came = f"only {count} samples, less than {SHORTEST_S} s," if count else "no samples"
        raise InputError(f"{came} were received from the pipe: check the program that should send them")


def microphone(rate: int = SAMPLE_RATE) -> Iterator[np.ndarray]:
    """Yield (n,) float32 blocks at 16 kHz from the default microphone, opened at ``rate``, until it is disconnected.

    Raises:
        InputError: if the rate is out of range, there is no microphone, or sounddevice or PortAudio is missing.
    """
    yield from resampled(_recorded(checked_rate(rate)), rate)


def _recorded(rate: int) -> Iterator[np.ndarray]:
    require_extra("the microphone", "mic", "sounddevice")
    try:
        import sounddevice  # pyright: ignore[reportMissingImports]
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
        raise InputError(f"the microphone cannot be opened ({error}): check its connection, and --rate") from error

"""Decoding of mp3, m4a, mp4, webm, mkv and all other formats of FFmpeg's libraries (in the PyAV wheel)."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import BinaryIO, Protocol, cast

import av
import av.error
import numpy as np
from av.container import InputContainer

from sortformer.audio.decoder import AudioInfo, Damaged, NotDecodable
from sortformer.audio.ogg import is_chain
from sortformer.audio.steady import Steady

__all__ = ["ByteSource", "FfmpegDecoder"]

# A playlist may refer to other files and URLs: only the file itself is ever opened.
NO_PROTOCOLS = {"protocol_whitelist": "none"}
# Containers that store a duration; elsewhere FFmpeg estimates it from the bit rate.
KEEP_DURATION = {"mov", "matroska", "avi", "asf", "flv", "wav", "caf"}
KEEP_TIME = {"mov", "matroska"}  # containers with a reliable timestamp for each packet
KEEP_START = {"mpegts", "mpeg"}  # those whose timestamps may jump later on, as where a broadcast was cut
LONGEST_PACKET_S = 1.0  # a damaged packet may claim hours
SHORTEST_GAP_S, LONGEST_GAP_S = 0.1, 3600.0  # less is an encoder's rounding or priming, more a broken timestamp
LONGEST_START_S = 10.0
CONTAINER_UNIT = Fraction(1, av.time_base)  # of the times of a container, in seconds
# In microseconds and bytes: without need FFmpeg would read that far in every broadcast before it starts.
UP_TO_LATE_SOUND = {"analyzeduration": "15000000", "probesize": "100000000"}
TO_THE_END = {"ignore_length": "1"}
HEADERLESS = re.compile(r"mulaw|alaw|vidc|[suf]\d+([bl]e)?")  # formats of raw samples, whose rate FFmpeg guesses
# Flags say what follows; VBRI has the bytes before the frames.
MPEG_FRAME_COUNT = re.compile(rb"(?s)(?:Xing|Info)\0\0\0(?:[\x03\x07\x0b\x0f].{4}(?P<bytes>.{4}))?|VBRI")


class ByteSource(Protocol):
    """The methods of a binary file that a decoder needs to read it sequentially."""

    def read(self, count: int, /) -> bytes:
        """Return up to ``count`` bytes; an empty result means the end."""
        ...

    def seekable(self) -> bool:
        """Return whether the file can seek."""
        ...


class FfmpegDecoder:
    """The decoder of the audio stream that players choose: of several, FFmpeg's best, such as the default one.

    A file that cannot seek is decoded as it arrives, and promises no duration. Damaged packets, gaps in the timestamps
    of MP4, MKV and WebM, and the time before late audio in these and MPEG, become silence.

    Raises:
        NotDecodable: if the format, the codec or the sample rate is unknown, or there is no audio stream.
    """

    def __init__(self, file: ByteSource) -> None:
        self._live = not file.seekable()
        self._frames_counted = not self._live and _counts_its_frames(cast(BinaryIO, file))
        unfinished = not self._live and _is_unfinished(cast(BinaryIO, file))
        self._chained = not self._live and is_chain(cast(BinaryIO, file))
        self._steady = None if self._live else _Named(cast(BinaryIO, file))
        self._container = self._opened(file, TO_THE_END if unfinished else {})
        try:
            if self._steady and self._format() in KEEP_START and not self._is_known():
                self._container.close()
                self._steady.seek(0)
                self._container = self._opened(file, UP_TO_LATE_SOUND)
            self._stream = self._chosen()
        except NotDecodable:
            self._container.close()
            raise
        self._rate, self._channels = self._stream.rate, self._stream.channels  # decoding may change the stream's

    @property
    def info(self) -> AudioInfo:
        return AudioInfo(
            duration_s=self._duration_s(),
            sample_rate=self._rate,
            channels=self._channels,
            codec=f"{self._format()}/{self._stream.codec_context.name}",
            track=1 + self._container.streams.audio.index(self._stream),
            tracks=len(self._container.streams.audio),
            estimated=self.promised_s is None,
        )

    @property
    def promised_s(self) -> float | None:
        if self._live:  # its header was written before the duration was known
            return None
        if self._format() not in KEEP_DURATION and not (self._format() == "mp3" and self._frames_counted):
            return None
        if self._format() == "caf" and self._stream.codec_context.name.startswith("pcm_"):
            return self._stream.frames / self._rate or None  # FFmpeg's duration is that of the data present
        # The duration of a video's container may be that of its video stream.
        return self._duration_s() if self._stream_s() or not self._container.streams.video else None

    def seek(self, sample: int) -> int:  # noqa: ARG002
        return 0  # seeking in a compressed stream is not sample-exact

    def pieces(self) -> Iterator[np.ndarray]:
        to_float = _ToFloat(self._rate)
        bad_packets, good_frames, given, lost_s = 0, 0, 0, 0.0
        try:
            for packet in self._packets():
                try:
                    frames = packet.decode()
                except av.error.FFmpegError:
                    bad_packets += 1
                    frames = []
                    lost_s += min(_seconds(packet.duration, packet.time_base), LONGEST_PACKET_S)
                good_frames += len(frames)
                for frame in frames:
                    pieces = to_float.pieces(frame)
                    silence = round(max(lost_s, self._gap_s(frame, given / self._rate)) * self._rate)
                    given, lost_s = given + silence + sum(map(len, pieces)), 0.0
                    yield from self._silence(silence, to_float.channels)  # keeps later samples in time
                    yield from pieces
            yield from to_float.rest()
        except (av.error.FFmpegError, ValueError) as error:
            raise Damaged(f"the rest cannot be decoded ({self._reason(error)})") from error
        if self._steady:
            self._steady.check()
        if bad_packets and not good_frames:
            raise NotDecodable(f"all its {bad_packets} packets are damaged")
        if bad_packets:
            raise Damaged(f"{bad_packets} of its packets could not be decoded")

    def close(self) -> None:
        self._container.close()

    def _opened(self, file: ByteSource, options: dict[str, str]) -> InputContainer:
        try:
            return av.open(self._steady or file, mode="r", options=NO_PROTOCOLS | options)
        except (av.error.FFmpegError, ValueError) as error:
            raise NotDecodable("its format is unknown, or its index is missing") from error

    def _is_known(self) -> bool:
        """Return whether FFmpeg has found sound, within the first seconds and bytes, in any stream that is for it."""
        streams = self._container.streams.audio
        return not streams or any(stream.codec_context and stream.rate for stream in streams)

    def _chosen(self) -> av.AudioStream:
        """Return the stream to decode; raise ``NotDecodable`` if there is none."""
        if HEADERLESS.fullmatch(self._container.format.name):
            raise NotDecodable("it has no header that tells its sample rate")
        if not self._container.streams.audio:
            raise NotDecodable("it has no audio stream")
        best = self._container.streams.best("audio")
        stream = best if isinstance(best, av.AudioStream) else self._container.streams.audio[0]
        if stream.codec_context is None or not stream.rate or not _count_without_list(stream.codec_context):
            raise NotDecodable("the codec of its audio stream is unknown")
        return stream

    def _packets(self) -> Iterator[av.Packet]:
        # At the end PyAV also looks up streams that a broadcast has added since, and fails to find them.
        with suppress(IndexError):
            yield from self._container.demux(self._stream)

    def _format(self) -> str:
        return self._container.format.name.split(",")[0]

    def _stream_s(self) -> float | None:
        if self._format() == "matroska":  # has none, and FFmpeg gives the container's to a stream that starts late
            return None
        return max(0.0, _seconds(self._stream.duration, self._stream.time_base)) or None

    def _container_s(self) -> float | None:
        return max(0.0, _seconds(self._container.duration, CONTAINER_UNIT)) or None

    def _duration_s(self) -> float | None:
        """Return the seconds from the start of the file's first stream to the end of the audio, None if unknown."""
        if self._chained:  # the header has that of the last stream
            return None
        stream_s, origin_s = self._stream_s(), self._origin_s()
        if stream_s is None:
            end_s = self._container_s()
            return end_s - origin_s if end_s and self._format() == "matroska" and end_s > origin_s else end_s
        if self._format() == "mov" and not self._stream.frames:  # fragmented: the duration is the time of the end
            return stream_s - origin_s
        late_s = _seconds(self._stream.start_time, self._stream.time_base) - origin_s
        return stream_s + self._believed_s(late_s, at_start=True)

    def _origin_s(self) -> float:
        """Return the start time of the file's first stream; in an excerpt of a broadcast it is arbitrary."""
        return _seconds(self._container.start_time, CONTAINER_UNIT)

    def _gap_s(self, frame: av.AudioFrame, given_s: float) -> float:
        """Return the seconds without audio between the samples so far and a frame; 0 if the gap is not credible."""
        if frame.pts is None:
            return 0.0
        time_s = _seconds(frame.pts, frame.time_base) - self._origin_s()
        gap_s = self._believed_s(time_s - given_s, at_start=not given_s)
        if not gap_s:
            return 0.0
        # The duration of fragments may lack what an edit list puts before them, and that of the container has it.
        end_s = max(self._duration_s() or math.inf, self._container_s() or 0.0)
        return gap_s if time_s < end_s else 0.0

    def _believed_s(self, gap_s: float, *, at_start: bool) -> float:
        longest_s = LONGEST_GAP_S if self._format() in KEEP_TIME else 0.0
        if at_start and self._format() in KEEP_START:
            longest_s = LONGEST_START_S
        return gap_s if SHORTEST_GAP_S < gap_s < longest_s else 0.0

    def _silence(self, samples: int, channels: int) -> Iterator[np.ndarray]:
        for start in range(0, samples, self._rate):
            yield np.zeros((min(self._rate, samples - start), channels), np.float32)

    def _reason(self, error: Exception) -> str:
        if self._format() == "ogg" and isinstance(error, av.error.PatchWelcomeError):  # a chain: its channels change
            return "FFmpeg does not support what follows: give each part as a file of its own"
        return getattr(error, "strerror", None) or str(error)


class _ToFloat:
    """The conversion of frames to (n, channels) float32 at one rate, with the channels of the first frame.

    Where recordings were joined, rate and channels may change: a frame of other channels gives their mean in each.
    """

    def __init__(self, rate: int) -> None:
        self._rate, self.channels = rate, 0
        self._kind: tuple[str, str, int] | None = None
        self._resampler = av.AudioResampler(format="flt", rate=rate)

    def pieces(self, frame: av.AudioFrame) -> list[np.ndarray]:
        kind, before = (frame.format.name, frame.layout.name, frame.sample_rate), list[np.ndarray]()
        if self._kind not in (None, kind):  # a resampler refuses frames of another kind
            before = self.rest()
            self._resampler = av.AudioResampler(format="flt", rate=self._rate)
        self._kind, self.channels = kind, self.channels or frame.layout.nb_channels
        return before + [self._samples(part) for part in self._resampler.resample(frame)]

    def rest(self) -> list[np.ndarray]:
        return [self._samples(part) for part in self._resampler.resample(None)]

    def _samples(self, frame: av.AudioFrame) -> np.ndarray:
        # Interleaved, in one plane: PyAV reads the planes of more than eight channels from unowned memory.
        samples = frame.to_ndarray().reshape(-1, frame.layout.nb_channels)
        if samples.shape[1] != self.channels:
            samples = samples.mean(axis=1, keepdims=True).repeat(self.channels, axis=1)
        return samples


class _Named(Steady):
    """A steady file that keeps its name, by whose extension FFmpeg recognises some formats."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.name = getattr(file, "name", "")


def _count_without_list(codec: av.AudioCodecContext) -> int:
    """Return the number of channels, and forget the list of them that a layout with an order of its own has.

    PyAV before 19 frees such a list with every copy of the layout, one of which each frame makes.
    """
    layout = codec.layout
    if "(" in layout.name:
        codec.layout = f"{layout.nb_channels} channels"
    return layout.nb_channels


def _counts_its_frames(file: BinaryIO) -> bool:
    """Return whether the first frame of an MP3 counts all its frames; the file is at its start before and after.

    In joined MP3s it counts those of the first: it also has a count of bytes, beyond which FFmpeg does not believe it.
    """
    head, start = file.read(10), 0
    if head.startswith(b"ID3"):  # a tag header of 10 bytes, the last four of which are the size, in groups of 7 bits
        start = 10 + sum(byte << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=False))
        head = b""
        file.seek(start)
    first_frame = head + file.read(200)
    length = file.seek(0, os.SEEK_END) - start
    file.seek(0)
    found = MPEG_FRAME_COUNT.search(first_frame)
    return found is not None and not (found["bytes"] and length > 17 / 16 * int.from_bytes(found["bytes"]))


def _is_unfinished(file: BinaryIO) -> bool:
    """Return whether an RF64 or BW64 (EBU Tech 3306, ITU-R BS.2088) has a size of 0, as after a crash; rewinds it."""
    head = file.read(36)
    file.seek(0)
    return head.startswith((b"RF64", b"BW64")) and head[12:16] == b"ds64" and not any(head[28:])


class Unit(Protocol):
    """Of times, in seconds: a Fraction, or the type that PyAV has in its place from 19 on."""

    @property
    def numerator(self) -> int: ...

    @property
    def denominator(self) -> int: ...


def _seconds(count: int | None, unit: Unit | None) -> float:
    return count * unit.numerator / unit.denominator if count and unit else 0.0

"""Decode mp3, m4a, mp4, webm, mkv and whatever else FFmpeg's libraries (inside the PyAV wheel) understand."""

import math
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import BinaryIO, Protocol, cast

import av
import av.error
import numpy as np

from sortformer.audio.container import AudioInfo, Damaged, NotDecodable, Steady
from sortformer.audio.ogg import is_chain

__all__ = ["ByteSource", "FfmpegDecoder"]

# A playlist inside a file may name other files and addresses: nothing but the file itself is ever opened.
NO_PROTOCOLS = {"protocol_whitelist": "none"}
# Containers that store a duration; elsewhere FFmpeg estimates it from the bit rate.
KEEP_DURATION = {"mov", "matroska", "avi", "asf", "flv", "wav", "caf"}
KEEP_TIME = {"mov", "matroska"}  # containers that say of each packet when it is heard
LONGEST_PACKET_S = 1.0  # a damaged packet may claim hours
SHORTEST_GAP_S, LONGEST_GAP_S = 0.1, 3600.0  # less is the rounding or the priming of an encoder, more a broken time
TO_THE_END = {"ignore_length": "1"}
MPEG_FRAME_COUNT = (b"Xing", b"Info", b"VBRI")


class ByteSource(Protocol):
    """As much of a binary file as a decoder needs of one that is read from its beginning to its end."""

    def read(self, count: int, /) -> bytes:
        """Return up to ``count`` bytes, and none only at the end."""
        ...

    def seekable(self) -> bool:
        """Whether it is a file in which one can go back."""
        ...


class FfmpegDecoder:
    """A file in which FFmpeg finds an audio stream; of several, the first is decoded.

    What cannot be sought in is decoded as it comes, and promises no duration. Where packets are damaged, and where MP4,
    MKV and WebM say that nothing was recorded for a while, there is silence.

    Raises:
        NotDecodable: if the format is unknown or there is no audio in it.
    """

    def __init__(self, file: ByteSource) -> None:
        self._live = not file.seekable()
        self._frames_counted = not self._live and _counts_its_frames(cast(BinaryIO, file))
        unfinished = not self._live and _is_unfinished(cast(BinaryIO, file))
        self._chained = not self._live and is_chain(cast(BinaryIO, file))
        self._steady = None if self._live else _Named(cast(BinaryIO, file))
        try:
            self._container = av.open(
                self._steady or file, mode="r", options=NO_PROTOCOLS | (TO_THE_END if unfinished else {})
            )
        except (av.error.FFmpegError, ValueError) as error:
            raise NotDecodable("its format is not known, or its index is missing") from error
        if not self._container.streams.audio:
            self._container.close()
            raise NotDecodable("there is no audio stream in it")
        self._stream = self._container.streams.audio[0]
        if self._stream.codec_context is None or not self._stream.rate or not self._stream.channels:
            self._container.close()
            raise NotDecodable("the codec of its audio stream is not known")
        self._rate, self._channels = self._stream.rate, self._stream.channels  # decoding may change the stream's

    @property
    def info(self) -> AudioInfo:
        return AudioInfo(
            duration_s=self._duration_s(),
            sample_rate=self._rate,
            channels=self._channels,
            codec=f"{self._format()}/{self._stream.codec_context.name}",
        )

    @property
    def promised_s(self) -> float | None:
        if self._live:  # its header was written before anybody knew
            return None
        if self._format() not in KEEP_DURATION and not (self._format() == "mp3" and self._frames_counted):
            return None
        if self._format() == "caf" and self._stream.codec_context.name.startswith("pcm_"):
            return self._stream.frames / self._rate or None  # its duration is that of what is there
        # The duration of a whole video may be that of its pictures.
        return self._duration_s() if self._stream_s() or not self._container.streams.video else None

    def seek(self, sample: int) -> int:  # noqa: ARG002
        return 0  # where a compressed stream lands is not exact to the sample

    def pieces(self) -> Iterator[np.ndarray]:
        # Sample format only: rate and channels stay, so a stream whose header was wrong about them is noticed.
        to_float = av.AudioResampler(format="flt", rate=self._rate)
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
                    pieces = [_samples(part) for part in to_float.resample(frame)]
                    silence = round(max(lost_s, self._gap_s(frame, given / self._rate)) * self._rate)
                    given, lost_s = given + silence + sum(map(len, pieces)), 0.0
                    yield from self._silence(silence)  # keeps what follows at its time
                    yield from pieces
            yield from (_samples(part) for part in to_float.resample(None))
        except (av.error.FFmpegError, ValueError) as error:
            raise Damaged(f"the rest cannot be decoded ({_reason(error)})") from error
        if self._steady:
            self._steady.check()
        if bad_packets and not good_frames:
            raise NotDecodable(f"all its {bad_packets} packets are damaged")
        if bad_packets:
            raise Damaged(f"{bad_packets} of its packets could not be decoded")

    def close(self) -> None:
        self._container.close()

    def _packets(self) -> Iterator[av.Packet]:
        # At the end PyAV looks also for streams that a broadcast has begun meanwhile, and does not know them.
        with suppress(IndexError):
            yield from self._container.demux(self._stream)

    def _format(self) -> str:
        return self._container.format.name.split(",")[0]

    def _stream_s(self) -> float | None:
        duration, unit = self._stream.duration, self._stream.time_base
        return float(duration * unit) if duration and duration > 0 and unit else None

    def _container_s(self) -> float | None:
        duration = self._container.duration
        return duration / av.time_base if duration and duration > 0 else None

    def _duration_s(self) -> float | None:
        """Seconds until the sound ends, from where the first stream of the file begins."""
        if self._chained:  # it is that of the last one
            return None
        stream_s, origin_s = self._stream_s(), self._origin_s()
        if stream_s is None:
            end_s = self._container_s()
            return end_s - origin_s if end_s and self._format() == "matroska" and end_s > origin_s else end_s
        if self._format() == "mov" and not self._stream.frames:  # of fragments it is the time of their end
            return stream_s - origin_s
        return stream_s + self._believed_s(_seconds(self._stream.start_time, self._stream.time_base) - origin_s)

    def _origin_s(self) -> float:
        """The time at which the first stream of the file begins: in a cut of a broadcast, any."""
        return _seconds(self._container.start_time, Fraction(1, av.time_base))

    def _gap_s(self, frame: av.AudioFrame, given_s: float) -> float:
        """Seconds that a frame lies behind what has been given, where that can be believed: nobody was recorded."""
        if frame.pts is None:
            return 0.0
        time_s = _seconds(frame.pts, frame.time_base) - self._origin_s()
        gap_s = self._believed_s(time_s - given_s)
        return gap_s if gap_s and time_s < (self._duration_s() or math.inf) else 0.0

    def _believed_s(self, gap_s: float) -> float:
        return gap_s if self._format() in KEEP_TIME and SHORTEST_GAP_S < gap_s < LONGEST_GAP_S else 0.0

    def _silence(self, samples: int) -> Iterator[np.ndarray]:
        for start in range(0, samples, self._rate):
            yield np.zeros((min(self._rate, samples - start), self._channels), np.float32)


class _Named(Steady):
    """A steady file that has kept its name, by the end of which FFmpeg knows some formats."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.name = getattr(file, "name", "")


def _counts_its_frames(file: BinaryIO) -> bool:
    """Whether the first frame of an MP3 holds a count of frames; the file is at its beginning before and after."""
    head = file.read(10)
    if head.startswith(b"ID3"):  # a tag of 10 bytes and a size in four groups of 7 bits comes first
        file.seek(10 + sum(byte << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=False)))
        head = b""
    first_frame = head + file.read(200)
    file.seek(0)
    return any(tag in first_frame for tag in MPEG_FRAME_COUNT)


def _is_unfinished(file: BinaryIO) -> bool:
    """Whether an RF64 (EBU Tech 3306) counts no samples, as after a crash; the file is left at its beginning."""
    head = file.read(36)
    file.seek(0)
    return head.startswith(b"RF64") and head[12:16] == b"ds64" and not any(head[28:])


def _seconds(count: int | None, unit: Fraction | None) -> float:
    return float(count * unit) if count and unit else 0.0


def _samples(frame: av.AudioFrame) -> np.ndarray:
    # Interleaved, in one plane: PyAV reads the planes of more than eight channels from unowned memory.
    return frame.to_ndarray().reshape(-1, frame.layout.nb_channels)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)

"""Decode mp3, m4a, mp4, webm, mkv and whatever else FFmpeg's libraries (inside the PyAV wheel) understand."""

from collections.abc import Iterator
from typing import BinaryIO, Protocol, cast

import av
import av.error
import numpy as np

from sortformer.audio.container import AudioInfo, Damaged, NotDecodable

__all__ = ["ByteSource", "FfmpegDecoder"]

# A playlist inside a file may name other files and addresses: nothing but the file itself is ever opened.
NO_PROTOCOLS = {"protocol_whitelist": "none"}
# Containers that store a duration; elsewhere FFmpeg estimates it from the bit rate.
KEEP_DURATION = {"mov", "matroska", "avi", "asf", "flv", "wav"}
LONGEST_PACKET_S = 1.0  # a damaged packet may claim hours
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

    What cannot be sought in is decoded as it comes, and promises no duration.

    Raises:
        NotDecodable: if the format is unknown or there is no audio in it.
    """

    def __init__(self, file: ByteSource) -> None:
        self._live = not file.seekable()
        self._frames_counted = not self._live and _counts_its_frames(cast(BinaryIO, file))
        try:
            self._container = av.open(file, mode="r", options=NO_PROTOCOLS)
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
            duration_s=self._stream_s() or self._container_s(),
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
        if self._stream_s():
            return self._stream_s()
        # The duration of a whole video may be that of its pictures.
        return None if self._container.streams.video else self._container_s()

    def seek(self, sample: int) -> int:  # noqa: ARG002
        return 0  # where a compressed stream lands is not exact to the sample

    def pieces(self) -> Iterator[np.ndarray]:
        # Sample format only: rate and channels stay, so a stream whose header was wrong about them is noticed.
        to_float = av.AudioResampler(format="flt", rate=self._rate)
        bad_packets, good_frames = 0, 0
        try:
            for packet in self._container.demux(self._stream):
                try:
                    frames = packet.decode()
                except av.error.FFmpegError:
                    bad_packets += 1
                    frames = []
                    yield self._silence(packet)  # keeps what follows at its time
                good_frames += len(frames)
                for frame in frames:
                    yield from (_samples(part) for part in to_float.resample(frame))
            yield from (_samples(part) for part in to_float.resample(None))
        except (av.error.FFmpegError, ValueError) as error:
            raise Damaged(f"the rest cannot be decoded ({_reason(error)})") from error
        if bad_packets and not good_frames:
            raise NotDecodable(f"all its {bad_packets} packets are damaged")
        if bad_packets:
            raise Damaged(f"{bad_packets} of its packets could not be decoded")

    def close(self) -> None:
        self._container.close()

    def _format(self) -> str:
        return self._container.format.name.split(",")[0]

    def _stream_s(self) -> float | None:
        duration, unit = self._stream.duration, self._stream.time_base
        return float(duration * unit) if duration and duration > 0 and unit else None

    def _container_s(self) -> float | None:
        duration = self._container.duration
        return duration / av.time_base if duration and duration > 0 else None

    def _silence(self, packet: av.Packet) -> np.ndarray:
        seconds = float(packet.duration * packet.time_base) if packet.duration and packet.time_base else 0.0
        return np.zeros((round(min(seconds, LONGEST_PACKET_S) * self._rate), self._channels), np.float32)


def _counts_its_frames(file: BinaryIO) -> bool:
    """Whether the first frame of an MP3 holds a count of frames; the file is at its beginning before and after."""
    head = file.read(10)
    if head.startswith(b"ID3"):  # a tag of 10 bytes and a size in four groups of 7 bits comes first
        file.seek(10 + sum(byte << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=False)))
        head = b""
    first_frame = head + file.read(200)
    file.seek(0)
    return any(tag in first_frame for tag in MPEG_FRAME_COUNT)


def _samples(frame: av.AudioFrame) -> np.ndarray:
    # Interleaved, in one plane: PyAV reads the planes of more than eight channels from unowned memory.
    return frame.to_ndarray().reshape(-1, frame.layout.nb_channels)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)

"""Make recordings for tests: signals, and files of every kind, with the encoders of the decoders' own wheels."""

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import soundfile

__all__ = [
    "FFMPEG_FORMATS",
    "SOUNDFILE_FORMATS",
    "Breaking",
    "chirp",
    "delay",
    "encode",
    "fading_aac",
    "lag",
    "live_mp3",
    "made",
    "piped_flac",
    "write",
]

SOUNDFILE_FORMATS = {
    "wav": {},
    "flac": {},
    "ogg": {"format": "OGG", "subtype": "VORBIS"},
    "opus": {"format": "OGG", "subtype": "OPUS"},
    "mp3": {},
    "aiff": {},
}
FFMPEG_FORMATS = {"m4a": "aac", "mp4": "aac", "webm": "libopus", "mkv": "libopus", "mka": "flac", "mov": "alac"}


def chirp(seconds: float, rate: int, channels: int = 1) -> np.ndarray:
    """Return a non-repeating sweep, (samples,) or (samples, channels) float32; channels differ in loudness."""
    time = np.arange(round(seconds * rate)) / rate
    tone = np.sin(2 * np.pi * (200 * time + 300 * time**2 / max(seconds, 1e-9)))
    if channels == 1:
        return (0.3 * tone).astype(np.float32)
    return (tone[:, None] * np.linspace(0.1, 0.5, channels)).astype(np.float32)


def write(path: Path, samples: np.ndarray, rate: int, **options: str) -> Path:
    """Write with soundfile."""
    soundfile.write(path, samples, rate, **options)
    return path


def made(path: Path, samples: np.ndarray, rate: int, **options: str) -> Path:
    """Write in the format of the suffix; ``options`` are those of :func:`encode`."""
    if (extension := path.suffix[1:]) in FFMPEG_FORMATS:
        return encode(path, samples, rate, FFMPEG_FORMATS[extension], **options)
    return write(path, samples, rate, **SOUNDFILE_FORMATS[extension])


def live_mp3(path: Path) -> Path:
    """Write 8 s, half of them silence, as an MP3 without a frame count: its length has to be estimated."""
    quiet_then_loud = np.concatenate([np.zeros(64_000, np.float32), chirp(4, 16_000)])
    content = write(path, quiet_then_loud, 16_000, bitrate_mode="VARIABLE").read_bytes()
    first, tag = content[:2], max(content.find(b"Xing"), content.find(b"Info"))
    assert tag > 0
    path.write_bytes(content[content.index(first, tag) :])
    return path


def fading_aac(path: Path) -> Path:
    """Write 8 s, the last 6 of them silence, as AAC without a container: by its first bit rate, it is much shorter."""
    loud = chirp(2, 16_000) + np.random.default_rng(0).normal(0, 0.1, 32_000).astype(np.float32)
    return encode(path, np.concatenate([loud, np.zeros(96_000, np.float32)]), 16_000, "aac", "adts")


def piped_flac(path: Path, samples: np.ndarray, rate: int) -> Path:
    """Write a FLAC as from a pipe: without the number of samples in its header."""
    content = bytearray(write(path, samples, rate).read_bytes())
    content[21] &= 0xF0  # 36 bits of STREAMINFO (RFC 9639, 8.2)
    content[22:26] = bytes(4)
    path.write_bytes(content)
    return path


def delay(source: Path, target: Path, after_s: float, by_s: float, **options: str) -> Path:
    """Rewrite an encoded file with all timestamps from a time on shifted."""
    with av.open(str(source)) as found, av.open(str(target), "w", options=options) as made:
        stream = made.add_stream_from_template(found.streams.audio[0])
        for packet in found.demux(found.streams.audio[0]):
            if packet.pts is None or packet.dts is None:
                continue
            late = round(by_s / packet.time_base) if packet.pts * packet.time_base >= after_s else 0
            packet.pts, packet.dts, packet.stream = packet.pts + late, packet.dts + late, stream
            made.mux(packet)
    return target


def encode(path: Path, samples: np.ndarray, rate: int, codec: str, kind: str | None = None, **options: str) -> Path:
    """Encode 1, 2 or 6 channels of float samples with PyAV; without a ``kind`` the suffix determines the container."""
    layout = {1: "mono", 2: "stereo", 6: "5.1(side)"}[np.atleast_2d(samples.T).shape[0]]
    with av.open(str(path), "w", format=kind, options=options) as container:
        stream = container.add_stream(codec, rate=rate)
        stream.layout = layout
        planes = np.ascontiguousarray(np.atleast_2d(samples.T))
        frame = av.AudioFrame.from_ndarray(planes, format="fltp", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
        to_codec = av.AudioResampler(stream.format.name, layout, rate, stream.codec_context.frame_size or None)
        for part in [*to_codec.resample(frame), *to_codec.resample(None)]:
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))
    return path


class Breaking(io.BytesIO):
    """A file whose owner fails, closes it, or gives up, while it is read."""

    def __init__(self, content: bytes, error: BaseException) -> None:
        super().__init__(content)
        self.error = error

    def read(self, count: int | None = -1, /) -> bytes:
        if self.tell() > 20_000:
            raise self.error
        return super().read(count)


def lag(later: np.ndarray, earlier: np.ndarray) -> int:
    """Return the delay of one signal relative to another, in samples, by cross-correlation."""
    size = len(later) + len(earlier)
    spectrum = np.fft.rfft(later, size) * np.fft.rfft(earlier, size).conj()
    shift = int(np.fft.irfft(spectrum, size).argmax())
    return shift if shift < size // 2 else shift - size

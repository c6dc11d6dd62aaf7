"""Decode wav, flac, ogg, opus, aiff and their kin with libsndfile."""

import contextlib
import io
import re
from collections.abc import Iterator
from typing import BinaryIO, cast

import numpy as np
import soundfile

from sortformer.audio.container import AudioInfo, Damaged, NotDecodable

__all__ = ["LibsndfileDecoder"]

PIECE_SAMPLES = 4096  # a piece in which decoding fails is lost, so pieces are short
UNKNOWN_SIZE = 0x7FFF0000  # programs that write to a pipe put the largest number where the size belongs
CUT_CHUNK = re.compile(r"^ ?(?:data|SSND) : (\d+) \(should be (\d+)\)", re.MULTILINE)
SIZES = re.compile(r"(?ms)^Length : (\d+)\nRIFF : (\d+)\n.*^  Bytes/sec +: (\d+)\n.*^data : (\d+)\n")
UNCOUNTED_S = 10.0  # more than a picture or a tag behind the samples would fill


class LibsndfileDecoder:
    """A file that libsndfile understands.

    Raises:
        NotDecodable: if it does not.
    """

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._file = soundfile.SoundFile(cast(BinaryIO, _Steady(file)))
        except (soundfile.LibsndfileError, TypeError, ValueError) as error:
            raise NotDecodable("its format is not known") from error
        if not self._file.frames:  # a recorder that crashed leaves a size of 0 before the samples: FFmpeg reads them
            self._file.close()
            raise NotDecodable("there are no samples in it")

    @property
    def info(self) -> AudioInfo:
        rate = self._file.samplerate
        codec = "flac" if self._file.format == "FLAC" else f"{self._file.format}/{self._file.subtype}".lower()
        return AudioInfo(self._file.frames / rate, rate, self._file.channels, codec)

    @property
    def promised_s(self) -> float | None:
        frames, log = self._file.frames, self._file.extra_info
        cut = CUT_CHUNK.search(log)
        if cut and int(cut[2]) and int(cut[1]) < UNKNOWN_SIZE:
            frames = round(frames * int(cut[1]) / int(cut[2]))
        return frames / self._file.samplerate

    def seek(self, sample: int) -> int:
        try:
            return self._file.seek(min(sample, self._file.frames))
        except soundfile.LibsndfileError as error:
            raise Damaged("there is no way to the middle of it") from error

    def pieces(self) -> Iterator[np.ndarray]:
        while True:
            try:
                piece = self._file.read(PIECE_SAMPLES, dtype="float32", always_2d=True)
            except soundfile.LibsndfileError as error:
                raise Damaged("the rest cannot be decoded") from error
            if not len(piece):
                break
            yield piece
        if re.search(r"without an End-Of-Stream|lacks an end-of-stream", self._file.extra_info):
            raise Damaged("the end of the file is missing")
        if self._uncounted_s() > UNCOUNTED_S:
            raise Damaged("its header counts only part of it")

    def close(self) -> None:
        self._file.close()

    def _uncounted_s(self) -> float:
        """Seconds that a WAV holds beyond the size in its header, which starts again at 0 after 4 GB."""
        found = SIZES.search(self._file.extra_info)
        if not found:
            return 0.0
        length, riff, per_second, data = map(int, found.groups())
        return (length - max(riff, data)) / per_second if per_second else 0.0


class _Steady:
    """A file that stays where it is when a broken header sends it to an impossible place.

    An error raised here could not pass through the C library: it would be printed to the terminal, and lost.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.read, self.tell = file.read, file.tell

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with contextlib.suppress(ValueError, OSError):
            self._file.seek(offset, whence)
        return self._file.tell()

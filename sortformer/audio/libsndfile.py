"""Decoding of wav, flac, ogg, opus, aiff and similar formats with libsndfile."""

import re
from collections.abc import Iterator
from typing import BinaryIO, Literal, cast

import numpy as np
import soundfile

from sortformer.audio.decoder import AudioInfo, Damaged, NotDecodable
from sortformer.audio.ogg import is_chain
from sortformer.audio.steady import Steady

__all__ = ["LibsndfileDecoder"]

PIECE_SAMPLES = 4096  # a piece in which decoding fails is lost, so pieces are short
# Programs that write to a pipe do not know the size, and store the largest number that its field holds.
UNKNOWN_SIZE, UNKNOWN_LONG_SIZE = 0x7FFF0000, 1 << 62
LONG_SIZES = {"RF64", "W64"}  # formats with 64-bit sizes
CUT_CHUNK = re.compile(
    r"^ *(?:data|SSND|BODY|riff|Riff size|Data Size) *: (\d+) \(should be (\d+)\)", re.MULTILINE
)  # of WAV, AIFF, SVX, W64, RF64 and AU
# Format, subtype, channels and subformat of what is left to FFmpeg: libsndfile takes the headers of blocks in a VOC for
# samples, the channels of an SVX for interleaved, and all subformats of W64 for PCM (1; floats, 3, are mended here). It
# adds noise to the ADPCM of an AIFF, and its decoder of MP3 writes complaints to the terminal.
MISREAD = re.compile(r"VOC/|SVX/.+/2/|W64/.+/(?![13]$)\w+$|AIFF/IMA_ADPCM/|.+/MPEG_LAYER_III/")
SUBFORMAT = re.compile(r"^ *esf_field1 : 0x(\w+)", re.MULTILINE)  # of an extensible header
NIST_COUNT = re.compile(rb"^sample_count -i (\d{1,18})", re.MULTILINE)
NIST_HEADER_BYTES = 1024
SIZES = re.compile(r"(?ms)^Length : (\d+)\n.*^RIFF : (\d+)\n.*^  Bytes/sec +: (\d+)\n.*^data : (\d+)\n")
OGG_BEFORE_S = 10  # after a seek, samples in the last page differ in libsndfile, and Opus needs time to converge
UNCOUNTED_S = 10.0  # more than a picture or a tag after the samples takes


class LibsndfileDecoder:
    """The decoder of the formats that libsndfile understands.

    Raises:
        NotDecodable: if the format is unknown, or one that libsndfile misreads (such as MP3, VOC and chains of Ogg
            streams), or the file has no samples.
    """

    def __init__(self, file: BinaryIO) -> None:
        if is_chain(file):
            raise NotDecodable("it is a chain of streams, and libsndfile decodes only the first")
        found = NIST_COUNT.search(file.read(NIST_HEADER_BYTES))
        self._nist_frames = int(found[1]) if found else 0
        file.seek(0)
        self._steady = Steady(file)
        try:
            self._file = soundfile.SoundFile(cast(BinaryIO, self._steady))
        except (soundfile.LibsndfileError, TypeError, ValueError) as error:
            raise NotDecodable("its format is unknown") from error
        # A recorder that crashed leaves a size of 0 in the header, and a FLAC written to a pipe no sample count.
        if not 0 < self._file.frames < UNKNOWN_LONG_SIZE:
            self._file.close()
            raise NotDecodable("it has no samples")
        self._kind = f"{self._file.format}/{self._file.subtype}"
        found = SUBFORMAT.search(self._file.extra_info)
        subformat = found[1] if found else ""
        if MISREAD.match(f"{self._kind}/{self._file.channels}/{subformat}"):
            self._file.close()
            raise NotDecodable("libsndfile misreads its format")
        self._dtype: Literal["float32", "int32"] = "float32"
        # Floats that libsndfile takes for integers: FFmpeg refuses a W64 from a pipe, and does not tell if one is cut.
        if self._kind == "W64/PCM_32" and subformat == "3":
            self._kind, self._dtype = "W64/FLOAT", "int32"

    @property
    def info(self) -> AudioInfo:
        rate = self._file.samplerate
        codec = "flac" if self._file.format == "FLAC" else self._kind.lower()
        return AudioInfo(self._file.frames / rate, rate, self._file.channels, codec)

    @property
    def promised_s(self) -> float | None:
        frames, log = self._file.frames, self._file.extra_info
        cut = CUT_CHUNK.search(log)
        unknown = UNKNOWN_LONG_SIZE if self._file.format in LONG_SIZES else UNKNOWN_SIZE
        if cut and int(cut[2]) and int(cut[1]) < unknown:
            frames = round(frames * int(cut[1]) / int(cut[2]))
        if self._file.format == "NIST":
            frames = max(frames, self._nist_frames)
        return frames / self._file.samplerate

    def seek(self, sample: int) -> int:
        if not self._file.seekable():  # GSM and other old telephone codecs
            return 0
        before = OGG_BEFORE_S * self._file.samplerate if self._file.format == "OGG" else 0
        try:
            return self._file.seek(min(max(0, sample - before), self._file.frames))
        except soundfile.LibsndfileError as error:
            self._steady.check()
            raise Damaged("seeking in it fails") from error

    def pieces(self) -> Iterator[np.ndarray]:
        while True:
            try:
                piece = self._file.read(PIECE_SAMPLES, dtype=self._dtype, always_2d=True).view(np.float32)
            except soundfile.LibsndfileError as error:
                self._steady.check()
                raise Damaged("the rest cannot be decoded") from error
            if not len(piece):
                break
            yield piece
        self._steady.check()
        if re.search(r"without an End-Of-Stream|lacks an end-of-stream", self._file.extra_info):
            raise Damaged("the end of the file is missing")
        if self._uncounted_s() > UNCOUNTED_S:
            raise Damaged("its header covers only part of it, ffmpeg -ignore_length 1 reads the rest")

    def close(self) -> None:
        self._file.close()

    def _uncounted_s(self) -> float:
        """Return the seconds that a WAV holds beyond the size in its header, which wraps to 0 after 4 GB."""
        found = SIZES.search(self._file.extra_info)
        if not found:
            return 0.0
        length, riff, per_second, data = map(int, found.groups())
        return (length - max(riff, data)) / per_second if per_second else 0.0

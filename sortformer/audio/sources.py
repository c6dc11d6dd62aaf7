"""What a recording can be read from: files, arrays, and the mappings and decoders of other libraries."""

import contextlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from sortformer.audio.arrays import as_samples, checked_rate, float_pieces, is_array
from sortformer.audio.decoder import AudioWarning, Damaged, Decoder, NotDecodable
from sortformer.audio.files import decoder, file_in, is_file, name_of
from sortformer.audio.signal import FASTEST_RATE, SLOWEST_RATE, rechunked
from sortformer.errors import InputError
from sortformer.warned import warn

__all__ = ["PIECE_SAMPLES", "AudioSource", "Recording", "recording_in", "recording_of"]

AudioSource = str | os.PathLike[str] | BinaryIO | np.ndarray | Mapping[str, Any] | Any

PIECE_SAMPLES = 1 << 14  # of a file: on the thousand that decoders yield, calls would take longer than the work
MISSING_S = 0.5  # encoders round durations and pad the ends; less than this is not worth a warning


@dataclass(frozen=True, slots=True)
class Recording:
    """An open source: (n, channels) float32 pieces at its own sample rate."""

    name: str
    rate: int
    duration_s: float | None
    pieces: Iterable[np.ndarray]
    track: int = 1
    tracks: int = 1


@contextlib.contextmanager
def recording_in(source: AudioSource, sample_rate: int | None) -> Iterator[Recording]:
    """Open a source, with the ``sample_rate`` of an array; sources and errors are those of ``audio.read``."""
    if isinstance(source, Mapping) and "channel" in source:
        raise InputError("a mapping cannot select the channel: pass channel=, counted from 1")
    if is_file(source):
        name = name_of(source)
        if sample_rate is not None:
            raise InputError(f"sample_rate is for arrays, and {name} has its own: leave it out")
        with decoder(source) as found:
            recording = recording_of(found, name)
            yield replace(recording, pieces=rechunked(recording.pieces, PIECE_SAMPLES))
    elif is_array(source):
        rate, samples = checked_rate(sample_rate), as_samples(source)
        yield Recording(name_of(source), rate, len(samples) / rate, float_pieces(samples))
    elif isinstance(source, Mapping) and is_array(wave := source.get("waveform", source.get("array"))):
        if sample_rate is not None:
            raise InputError("the waveform already has a sample rate: leave sample_rate out")
        with recording_in(wave, source.get("sample_rate", source.get("sampling_rate"))) as found:
            yield replace(found, name=name_of(source))
    elif callable(decode := getattr(source, "get_all_samples", None)):
        samples: Any = decode()
        with recording_in({"waveform": samples.data, "sample_rate": samples.sample_rate}, sample_rate) as found:
            yield found
    elif isinstance(source, Mapping) and (file := _file_in(source)) is not None:
        with recording_in(file, sample_rate) as found:
            yield found
    else:
        raise InputError(f"audio must be a path, a binary file object or an array, got {_instead(source)}")


def recording_of(found: Decoder, name: str) -> Recording:
    """Return the recording of an open decoder.

    Raises:
        InputError: if its header has a sample rate that no recording has.
    """
    info = found.info
    if not SLOWEST_RATE <= info.sample_rate <= FASTEST_RATE:
        raise InputError(f"{name} has an invalid header (a sample rate of {info.sample_rate} Hz): export it again")
    return Recording(name, info.sample_rate, info.duration_s, _decoded(found, name), info.track, info.tracks)


def _file_in(source: Mapping[str, Any]) -> Any:
    """Return the file of a mapping, or its ``bytes`` as one (undecoded, from Hugging Face's datasets)."""
    content = source.get("bytes")
    return io.BytesIO(content) if isinstance(content, bytes) else file_in(source)


def _instead(source: Any) -> str:
    """Return the type of a source that is not audio, and advice."""
    got = type(source).__name__
    if isinstance(source, bytes | bytearray | memoryview):
        return f"{got}: wrap bytes in io.BytesIO"
    if isinstance(source, Mapping):
        return f"{got}: pass the waveform, and its rate as sample_rate="
    if isinstance(source, tuple) and any(map(is_array, source)):
        return f"{got}: pass the array, and its rate as sample_rate="
    if isinstance(source, Iterable) and all(map(is_file, source)):
        return f"{got}: pass one recording at a time"
    return f"{got}: put lists in numpy.asarray" if isinstance(source, Iterable) else got


def _decoded(found: Decoder, name: str) -> Iterator[np.ndarray]:
    """Yield the pieces of a file that can be decoded, and warn if they are not all of it."""
    count, fault = 0, None
    try:
        for piece in found.pieces():
            count += len(piece)
            yield piece
    except (NotDecodable, Damaged) as error:
        fault = str(error)
        if not count:
            raise InputError(f"nothing in {name} can be decoded ({fault}): record or export it again") from error
    if not count:
        raise InputError(f"{name} has a header but no samples: record or export it again")
    used_s, promised_s = count / found.info.sample_rate, found.promised_s
    cut = promised_s is not None and used_s < promised_s - MISSING_S
    if cut or fault:
        of = f" of the {promised_s:.1f} s that its header states" if cut else ""
        why = f" ({fault})" if fault else ""
        warn(f"{name} is damaged or truncated{why}: using {used_s:.1f} s{of}", AudioWarning, stacklevel=2)

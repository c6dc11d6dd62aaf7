"""Reading of recordings, whole into one array, or as a stream of blocks in bounded memory."""

import contextlib
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np

from sortformer.audio.decoder import AudioInfo, AudioWarning, Damaged, Decoder, NotDecodable
from sortformer.audio.files import decoder, is_file, name_of
from sortformer.audio.signal import checked, joined, mixed, rechunked, resampled
from sortformer.audio.sources import PIECE_SAMPLES, AudioSource, Recording, recording_in, recording_of
from sortformer.config.checks import whole
from sortformer.errors import InputError
from sortformer.grid import LONGEST_S, SAMPLE_RATE
from sortformer.intervals import number
from sortformer.warned import warn

__all__ = [
    "SHORTEST_S",
    "blocks",
    "crop",
    "num_channels",
    "opened",
    "probe",
    "read",
    "signal_of",
    "up_to",
]

SHORTEST_S = 0.1
MARGIN_S = 0.05  # more than the resampler's filter reaches to either side
CANCELLED = 0.1  # relative to the power of the mean of uncorrelated channels
EVERY = 16  # one of so many samples suffices to estimate the power


def probe(source: str | os.PathLike[str] | BinaryIO) -> AudioInfo:
    """Return duration, sample rate, channels and codec from the header of a file; nothing is decoded.

    Raises:
        InputError: if the file is missing, empty or not audio.
    """
    if not is_file(source):
        raise InputError(f"probe needs a path or a binary file object, got {type(source).__name__}")
    with decoder(source) as found:
        return found.info


def read(source: AudioSource, sample_rate: int | None = None, channel: int | None = None) -> np.ndarray:
    """Read a whole recording, as (N,) float32 at 16 kHz.

    ``source`` is a path, a binary file object (read from its beginning, left open), or an array: (samples,) or
    (samples, channels), float in [-1, 1] or integers (int8, int16, int32, or uint8 with silence at 128, as in WAV),
    with its ``sample_rate`` in Hz. It may also be a mapping, of ``waveform`` and ``sample_rate`` or ``audio`` (a path
    or file object) as for pyannote.audio, or of ``array`` and ``sampling_rate`` as in Hugging Face's datasets, or the
    torchcodec ``AudioDecoder`` of datasets from version 4 on. ``channel`` picks one channel, counted from 1; without
    it, channels are averaged. Memory holds the samples once.

    Raises:
        InputError: if the source is missing, not audio, shorter than 0.1 s, has NaN or infinite samples, or lacks the
            channel.

    Warns:
        AudioWarning: if the end of the file is missing or parts of it are damaged (the rest is returned), or if the
            channels cancel each other out in their mean.
        SortformerWarning: if the file has several audio tracks, of which only one is read.
    """
    with recording_in(source, sample_rate) as recording:
        return joined(signal_of(recording, channel))


def blocks(
    source: AudioSource, sample_rate: int | None = None, channel: int | None = None, *, block_s: float = 10.0
) -> Iterator[np.ndarray]:
    """Yield a recording as (n,) float32 blocks of ``block_s`` seconds at 16 kHz, the last one shorter.

    The samples are those of ``read``, bit for bit, and so are sources, errors and warnings; these are raised when the
    stream reaches them.
    """
    with opened(source, sample_rate, channel, block_s=block_s) as (_, found):
        yield from found


@contextlib.contextmanager
def opened(
    source: AudioSource, sample_rate: int | None = None, channel: int | None = None, *, block_s: float = 10.0
) -> Iterator[tuple[float | None, Iterator[np.ndarray]]]:
    """Open a recording; yield its duration in seconds (None if it is not known beforehand) and its ``blocks``."""
    samples = number("block_s", block_s) * SAMPLE_RATE
    if not 0.5 < samples < math.inf:
        raise InputError(f"block_s must be positive and finite, got {block_s}")
    with recording_in(source, sample_rate) as recording:
        yield recording.duration_s, rechunked(signal_of(recording, channel), round(samples))


def up_to(blocks: Iterator[np.ndarray], limit_s: float) -> deque[np.ndarray]:
    """Return the blocks of a recording, up to and including the first that exceeds the limit in seconds."""
    taken, seconds = deque[np.ndarray](), 0.0
    for block in blocks:
        taken.append(block)
        seconds += len(block) / SAMPLE_RATE
        if seconds > limit_s:
            break
    return taken


def num_channels(source: AudioSource, sample_rate: int | None = None) -> int:
    """Return the number of channels of a recording; sources and errors are those of ``read``."""
    with recording_in(source, sample_rate) as recording:
        return next(iter(recording.pieces)).shape[1]


def crop(
    source: str | os.PathLike[str] | BinaryIO, start_s: float, duration_s: float | None, channel: int | None = None
) -> np.ndarray:
    """Read an excerpt of a file (None: to its end), as (n,) float32 at 16 kHz; it is shorter if the file ends early.

    The samples are those of ``read``: bit for bit at 16 kHz, and with differences below -80 dB at other sample rates.
    Nothing after the excerpt is decoded, and nothing before it in most wav, flac and ogg files. ``channel`` and memory
    are those of ``read``.

    Raises:
        InputError: if ``source`` is not a file, start or duration is negative or not finite, or the file is missing,
            not audio, has NaN or infinite samples in the excerpt, or lacks the channel.

    Warns:
        AudioWarning: if the file is damaged before the end of the excerpt (the samples before are returned), or if the
            channels cancel each other out in their mean.
        SortformerWarning: if the file has several audio tracks, of which only one is read.
    """
    if not is_file(source):
        got = type(source).__name__
        raise InputError(f"crop needs a path or a binary file object, got {got}: slice the samples of `read` otherwise")
    start_s = number("the start of an excerpt", start_s)
    duration_s = None if duration_s is None else number("the duration of an excerpt", duration_s)
    if not (0 <= start_s < math.inf and 0 <= (duration_s or 0.0) < math.inf):
        raise InputError(f"an excerpt needs a start and a duration of 0 s or more, got {start_s} and {duration_s}")
    end_s = LONGEST_S if duration_s is None else min(start_s + duration_s, LONGEST_S)
    start_s = min(start_s, LONGEST_S)
    first, last = round(start_s * SAMPLE_RATE), round(end_s * SAMPLE_RATE)
    name = name_of(source)
    with decoder(source) as found:
        recording = recording_of(found, name)
        _warn_of_tracks(recording)
        rate = recording.rate
        margin = 0.0 if rate == SAMPLE_RATE else MARGIN_S
        # The two sampling grids meet every `beat` samples: the resampler has to start there to hit the grid of `read`.
        beat = rate // math.gcd(rate, SAMPLE_RATE)
        begin = max(0, int((start_s - margin) * rate)) // beat * beat
        stretch = rechunked(_stretch(found, begin, math.ceil((end_s + margin) * rate), name), PIECE_SAMPLES)
        wave = joined(_mono(stretch, rate, channel, name, begin))
    offset = begin * SAMPLE_RATE // rate
    return wave[first - offset : last - offset]


def signal_of(recording: Recording, channel: int | None) -> Iterator[np.ndarray]:
    """Yield all audio of an open recording, as (n,) float32 pieces at 16 kHz; errors and warnings as for ``read``."""
    _warn_of_tracks(recording)
    count = 0
    for piece in _mono(recording.pieces, recording.rate, channel, recording.name):
        count += len(piece)
        yield piece
    if count < SHORTEST_S * SAMPLE_RATE:
        length_s = count * 1000 // SAMPLE_RATE / 1000  # rounded down, so that it reads as less than the minimum
        raise InputError(f"{recording.name} holds only {length_s:.3f} s of audio: at least {SHORTEST_S} s is needed")


def _stretch(found: Decoder, begin: int, end: int, name: str) -> Iterator[np.ndarray]:
    """Yield the pieces that can be decoded between two samples, counted at the file's own rate."""
    at = 0
    try:
        at = found.seek(begin)
        for piece in found.pieces():
            yield piece[max(0, begin - at) : end - at]
            at += len(piece)
            if at >= end:
                break
    except NotDecodable as error:
        raise InputError(f"nothing in {name} can be decoded ({error}): record or export it again") from error
    except Damaged as error:
        place = f"after {at / found.info.sample_rate:.1f} s"
        warn(f"{name} is damaged {place} ({error}): using the audio before that", AudioWarning, stacklevel=2)


def _warn_of_tracks(recording: Recording) -> None:
    if recording.tracks > 1:
        warn(
            f"{recording.name} has {recording.tracks} audio tracks: using number {recording.track}, which players "
            "choose; for another, give a file of it (ffmpeg -i FILE -map 0:a:1 OUT.wav is number 2)",
            stacklevel=2,
        )


def _mono(
    pieces: Iterable[np.ndarray], rate: int, channel: int | None, name: str, start: int = 0
) -> Iterator[np.ndarray]:
    """Convert (n, channels) pieces at ``rate`` to (n,) pieces at 16 kHz; the first begins at the sample ``start``."""
    pieces = _watched(pieces, name) if channel is None else pieces
    return resampled(checked(mixed(pieces, whole("channel", channel), name), rate, name, start), rate)


def _watched(pieces: Iterable[np.ndarray], name: str) -> Iterator[np.ndarray]:
    """Yield the (n, channels) pieces, and warn at the end if the channels cancel each other out in their mean."""
    apart = together = 0.0
    for piece in pieces:
        yield piece  # first: the consumer has checked its samples by the time that this resumes
        if piece.shape[1] > 1:
            some = piece[::EVERY].astype(np.float64)
            apart += float(np.square(some).mean(axis=1).sum()) / piece.shape[1]
            together += float(np.square(some.mean(axis=1)).sum())
    if together < CANCELLED * apart:
        warn(
            f"the channels of {name} cancel each other out in their mean: use one of them, such as the "
            "first (--channel 1; in Python, channel=1)",
            AudioWarning,
            stacklevel=2,
        )

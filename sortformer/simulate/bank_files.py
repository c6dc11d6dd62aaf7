"""The files of a voice bank: its recordings decoded once, augmented to more voices, levelled, labelled and cached."""

import csv
import hashlib
import io
import json
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import soxr

from sortformer.audio import read
from sortformer.draft import naming
from sortformer.errors import InputError
from sortformer.formats.source import read_text
from sortformer.grid import HOP_SAMPLES, SAMPLE_RATE
from sortformer.manifests.voices import COLUMNS
from sortformer.simulate.cache import undamaged
from sortformer.simulate.formants import with_formants
from sortformer.simulate.speech_activity import active_runs, speech_activity
from sortformer.simulate.voice import Voice

__all__ = ["SPEECH_RMS", "bank_files"]

SPEECH_RMS = 0.05  # root mean square of the active speech of every stored utterance; leaves 26 dB for peaks
_LAYOUT = 5  # part of the cache's key: increment it when the stored arrays change
_SLACK_S = 0.1  # times are rounded, and ends of compressed files differ between decoders


@contextmanager
def bank_files(
    folder: Path, split: str, speeds: Sequence[float], formants: Sequence[float], cache: str | Path | None
) -> Iterator[Path]:
    """Yield a folder with the files of a bank: a temporary one without a cache, else a place in the cache.

    Arguments and errors are those of ``VoiceBank.load``.
    """
    rows = _read_segments(folder / "segments.tsv", split)
    if cache is None:
        with tempfile.TemporaryDirectory(prefix="sortformer-bank-") as target:
            with naming(Path(target)):
                _build(Path(target), folder, rows, speeds, formants)
            yield Path(target)
        return
    key = [_LAYOUT, str(folder.resolve()), split, list(speeds), list(formants), rows]
    settings = json.dumps(key, sort_keys=True)
    place = Path(cache) / f"voices-{split}-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
    if _changed(place, folder):
        _renew(place, folder, rows, speeds, formants)
    yield place


def _read_segments(path: Path, split: str) -> list[dict[str, str]]:
    if not path.is_file():
        raise InputError(
            f"{path} is missing; a voice bank needs it (`sortformer manifest librispeech` or `voices` creates one)"
        )
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), delimiter="\t")
    absent = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if absent:
        raise InputError(f"{path} lacks the columns {', '.join(absent)}")
    rows = [{name: row[name] or "" for name in COLUMNS} for row in reader if row["split"] == split]
    if not rows:
        raise InputError(f"{path} lists no recording of the split '{split}'")
    for row in rows:
        try:
            valid = 0 <= float(row["start_s"]) < float(row["end_s"]) < math.inf
        except ValueError:
            valid = False
        if not valid:
            raise InputError(f"{path}: {row['file']} has an invalid time range, {row['start_s']} to {row['end_s']}")
    return sorted(rows, key=lambda row: (row["speaker"], row["file"], float(row["start_s"])))


def _stamps(folder: Path, names: Iterable[str]) -> dict[str, list[int]]:
    """Return size and modification time of each recording that exists."""
    stamps = {}
    for name in names:
        with suppress(OSError):
            state = (folder / name).stat()
            stamps[name] = [state.st_size, state.st_mtime_ns]
    return stamps


def _changed(place: Path, folder: Path) -> bool:
    """Return whether there is no cache, or an existing recording has changed since the cache was made."""
    try:
        with undamaged(place):
            known = json.loads((place / "recordings.json").read_text("utf-8"))
    except FileNotFoundError:
        return True
    return any(known[name] != stamp for name, stamp in _stamps(folder, known).items())


def _renew(
    place: Path, folder: Path, rows: list[dict[str, str]], speeds: Sequence[float], formants: Sequence[float]
) -> None:
    """Build a bank beside ``place``, and move it there; several processes may do so at once."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".voices-", dir=place.parent, ignore_cleanup_errors=True) as scratch:
        old, new = Path(scratch, "old"), Path(scratch, "new")
        try:
            new.mkdir()
            with naming(place):
                _build(new, folder, rows, speeds, formants)
            if _changed(place, folder):
                with suppress(FileNotFoundError):  # there is none, or another process did so first
                    os.rename(place, old)
            os.rename(new, place)
        except OSError:
            if _changed(place, folder):  # otherwise another process was first: its bank is the same
                raise


def _stored_hops(row: dict[str, str], speed: float) -> int:
    return int((float(row["end_s"]) - float(row["start_s"])) / speed * SAMPLE_RATE / HOP_SAMPLES)


def _build(
    target: Path, folder: Path, rows: list[dict[str, str]], speeds: Sequence[float], formants: Sequence[float]
) -> None:
    """Write the files of a bank; voices are ordered by speaker, then by speed and formants as given."""
    # Before they are read: so a change in the meantime is noticed later.
    stamps = _stamps(folder, sorted({row["file"] for row in rows}))
    said = defaultdict(list)
    for row in rows:
        said[row["speaker"]].append(row)
    voices = [
        Voice(speaker, speed, height, speaker.split("_")[0], own[0]["gender"])
        for speaker, own in said.items()
        for speed in speeds
        for height in formants
    ]
    order = [(row, v) for v, voice in enumerate(voices) for row in said[voice.speaker]]
    hops = np.array([_stored_hops(row, voices[v].speed) for row, v in order], dtype=np.int64)
    ends = np.cumsum(hops)
    starts = ends - hops
    active_hops = _write_audio(target / "audio.npy", folder, [(row, voices[v]) for row, v in order], hops.tolist())
    utterance_voice = np.array([v for _, v in order], dtype=np.int64)
    phrases = [
        (start + begin, start + end, number)
        for number, (start, active) in enumerate(zip(starts, active_hops, strict=True))
        for begin, end in zip(*active_runs(active), strict=True)
    ]
    phrase_start, phrase_end, phrase_utterance = np.array(phrases, dtype=np.int64).reshape(-1, 3).T
    counts = np.bincount(utterance_voice[phrase_utterance], minlength=len(voices))
    mute = [voices[v].speaker for v in np.flatnonzero(counts == 0)]
    if mute:
        raise InputError(f"no speech found in the recordings of {mute[0]} in {folder}; remove it from segments.tsv")
    np.savez(
        target / "index.npz",
        activity=np.concatenate(active_hops),
        utterance_start=starts,
        utterance_end=ends,
        utterance_voice=utterance_voice,
        phrase_start=phrase_start,
        phrase_end=phrase_end,
        phrase_utterance=phrase_utterance,
        voice_phrases=np.concatenate([[0], np.cumsum(counts)]),
    )
    (target / "recordings.json").write_text(json.dumps(stamps), "utf-8")
    (target / "voices.json").write_text(json.dumps([asdict(voice) for voice in voices]), "utf-8")


def _write_audio(
    path: Path, folder: Path, order: Sequence[tuple[dict[str, str], Voice]], hops: Sequence[int]
) -> list[np.ndarray]:
    """Write the utterances, one after another, as one array; return the activity (hops,) of each."""
    decode = lru_cache(maxsize=1)(partial(_decode, folder))  # the utterances of a recording follow one another
    active_hops = list[np.ndarray]()
    # Written piece by piece: with a memory map, a full disk would kill the process instead of raising an error.
    with path.open("wb") as audio:
        shape = (sum(hops) * HOP_SAMPLES,)
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.int16)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(audio, header)
        for (row, voice), length in zip(order, hops, strict=True):
            levelled, active = _utterance(_cut(folder, row, decode(row["file"])), voice, length)
            audio.write(levelled.tobytes())
            active_hops.append(active)
    return active_hops


def _decode(folder: Path, name: str) -> np.ndarray:
    """Return a recording in mono at 16 kHz."""
    try:
        return read(folder / name)
    except InputError as error:
        raise InputError(f"{error} (listed in {folder / 'segments.tsv'})") from error


def _cut(folder: Path, row: dict[str, str], wave: np.ndarray) -> np.ndarray:
    """Return the part of a recording that a row of the list names."""
    start, end = round(float(row["start_s"]) * SAMPLE_RATE), round(float(row["end_s"]) * SAMPLE_RATE)
    if end > len(wave) + _SLACK_S * SAMPLE_RATE:
        raise InputError(
            f"{folder / row['file']} ends at {len(wave) / SAMPLE_RATE:.2f} s, but {folder / 'segments.tsv'} lists it "
            f"up to {float(row['end_s']):.2f} s"
        )
    return wave[start:end]


def _utterance(cut: np.ndarray, voice: Voice, hops: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an utterance, levelled, (hops * 160,) int16, and its activity (hops,); zeros if no speech is found."""
    wave = cut if voice.speed == 1 else soxr.resample(cut, SAMPLE_RATE * voice.speed, SAMPLE_RATE)
    wave = wave if voice.formants == 1 else with_formants(wave, voice.formants)
    wave = np.pad(wave, (0, max(0, hops * HOP_SAMPLES - len(wave))))[: hops * HOP_SAMPLES]
    active = speech_activity(wave)
    if not active.any():
        return np.zeros(len(wave), np.int16), active
    loud = np.sqrt(np.mean(wave.reshape(-1, HOP_SAMPLES)[active].astype(np.float64) ** 2))
    return np.clip(np.rint(wave * (SPEECH_RMS / loud * 32768)), -32768, 32767).astype(np.int16), active

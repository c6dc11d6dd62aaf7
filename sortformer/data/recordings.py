"""Crops of real recordings: where they may begin, and their audio and labels."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from sortformer import audio
from sortformer.annotation import Diarization
from sortformer.config.model import ModelConfig
from sortformer.errors import InputError
from sortformer.grid import HOP_SAMPLES, SAMPLE_RATE
from sortformer.intervals import Regions, union
from sortformer.manifests import Entry, read
from sortformer.manifests.entry import SLACK_S
from sortformer.manifests.references import reference_of, regions_of
from sortformer.manifests.tree import duration_of, stored_duration_of
from sortformer.simulate import Conversations
from sortformer.simulate.speech_activity import active_runs
from sortformer.targets import activity

__all__ = ["Crop", "Crops", "Recordings"]

_HOP_S = HOP_SAMPLES / SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class Recordings:
    """The recordings of a manifest and their references.

    Attributes:
        source: the manifest.
        entries: the recordings.
        references: the turns of each, relative to its start.
        parts: the annotated regions of each, in seconds from its start: those of the UEM, or the whole recording.
    """

    source: str
    entries: tuple[Entry, ...]
    references: tuple[Diarization, ...]
    parts: tuple[Regions, ...]

    @classmethod
    def read(cls, manifest: str | os.PathLike[str]) -> "Recordings":
        """Read a manifest, its references and the recordings' headers; what has no duration is decoded.

        Raises:
            InputError: if a file is missing or broken, or a recording has no RTTM, or ends earlier than the manifest
                says.
        """
        entries = tuple(_measured(entry, os.fspath(manifest)) for entry in read(manifest))
        references, parts = [], []
        for entry in entries:
            length = entry.duration or 0.0
            references.append(Diarization(reference_of(entry), length, entry.id))
            regions = regions_of(entry)
            parts.append(((0.0, length),) if regions is None else union(regions))
        return cls(os.fspath(manifest), entries, tuple(references), tuple(parts))


@dataclass(frozen=True, slots=True)
class Crop:
    """A segment of a recording: the recording's index in the manifest, start and duration of the segment in seconds."""

    recording: int
    start_s: float
    duration_s: float


class Crops:
    """Draws crops of one length with a slot for every speaker.

    A crop begins on a hop (10 ms), lies within an annotated region, and has at most as many speakers as there are
    slots; crops with more are never drawn. Every second of the others is equally likely. A region that is shorter than
    a crop is used whole. Slots are in order of arrival in the crop. Speakers who are active at its start have arrived
    together, in which case the loss accepts either order.

    Raises:
        InputError: if there is nothing to draw from.
    """

    def __init__(self, recordings: Recordings, duration_s: float, num_slots: int, model: ModelConfig) -> None:
        self.recordings = recordings
        self.duration_s = duration_s
        self.num_slots = num_slots
        self._model = model
        hops = round(duration_s / _HOP_S)
        self._runs = [
            run
            for number, (reference, parts) in enumerate(zip(recordings.references, recordings.parts, strict=True))
            for run in _runs(number, reference, parts, hops, num_slots)
        ]
        if not self._runs:
            raise InputError(
                f"no stretch of {duration_s:g} s of the recordings in {recordings.source} has at most {num_slots} "
                "speakers: shorten the stages, or use a model with more slots"
            )
        self._edges = np.cumsum([run.weight for run in self._runs])

    def draw(self, rng: np.random.Generator) -> Crop:
        """Draw a crop."""
        run = self._runs[int(np.searchsorted(self._edges, rng.random() * self._edges[-1], side="right"))]
        return Crop(run.recording, (run.first + int(rng.integers(run.count))) * _HOP_S, run.length * _HOP_S)

    def read(self, crop: Crop) -> Conversations:
        """Return a crop as a batch of one, padded to the length of all crops; its voices are unknown (-1).

        If the model's features ask for it (``alike_loud``), it is normalised as ``diarize`` would do with it alone.

        Raises:
            InputError: if the recording cannot be read there.
        """
        entry = self.recordings.entries[crop.recording]
        found = audio.crop(entry.audio, entry.offset + crop.start_s, crop.duration_s)
        if not len(found):
            raise InputError(
                f"{entry.audio} ends before {entry.offset + crop.start_s:.2f} s, but {self.recordings.source} says "
                "that it is longer: make the manifest again"
            )
        grid = self._model.grid
        wave = torch.zeros(1, grid.samples(self.duration_s))
        found = found[: wave.shape[1]]
        wave[0, : len(found)] = torch.from_numpy(found)
        turns = self.recordings.references[crop.recording].crop(crop.start_s, crop.start_s + crop.duration_s)
        active, _ = activity(turns, grid.output_frames(wave.shape[1]), self.num_slots, grid, self._model.labelling)
        made = Conversations(
            wave=wave,
            activity=torch.from_numpy(active)[None],
            num_samples=torch.tensor([len(found)]),
            voice=torch.full((1, self.num_slots), -1),
        )
        return made.alike_loud() if self._model.features.alike_loud else made


def _measured(entry: Entry, manifest: str) -> Entry:
    """Return the entry with its duration, checked against the recording's header, or else measured."""
    if entry.duration is not None:
        whole, end = stored_duration_of(entry.audio), entry.offset + entry.duration
        if whole is not None and end > whole + SLACK_S:
            raise InputError(
                f"{manifest} says that {entry.audio} lasts until {end:.2f} s, but it ends at {whole:.2f} s: make the "
                "manifest again"
            )
        return entry
    whole = duration_of(entry.audio)
    if whole <= entry.offset:
        raise InputError(
            f"{manifest} starts {entry.audio} at {entry.offset:.2f} s, but it ends at {whole:.2f} s: make the manifest "
            "again"
        )
    return replace(entry, duration=whole - entry.offset)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of hops of a recording, at each of which a crop may begin.

    Attributes:
        recording: the recording's index in the manifest.
        first, count: the first of these hops, and their number.
        length: that of a crop, in hops.
        weight: its share of the region, in hops.
    """

    recording: int
    first: int
    count: int
    length: int
    weight: float


def _runs(
    recording: int, reference: Diarization, parts: Sequence[tuple[float, float]], hops: int, most: int
) -> Iterator[_Run]:
    """Yield the runs of a recording in which crops have ``most`` speakers or fewer."""
    speakers: dict[str, list[tuple[int, int]]] = {}
    for turn in reference:
        bounds = math.floor(_hops(turn.start)), math.ceil(_hops(turn.end))
        speakers.setdefault(turn.speaker, []).append(bounds)
    turns = [np.array(own).T for own in speakers.values()]
    for start, end in parts:
        begin = math.ceil(_hops(start))
        size = math.floor(_hops(end)) - begin
        length = min(hops, size)
        if length < 1:
            continue
        count = size - length + 1
        heard = np.zeros(count, dtype=np.int64)
        for first, last in turns:
            # A crop from hop s overlaps a turn if s < last and first < s + length.
            change = np.zeros(count + 1, dtype=np.int64)
            np.add.at(change, np.clip(first - length + 1 - begin, 0, count), 1)
            np.add.at(change, np.clip(last - begin, 0, count), -1)
            heard += np.cumsum(change[:-1]) > 0
        for first, last in zip(*(edges.tolist() for edges in active_runs(heard <= most)), strict=True):
            yield _Run(recording, begin + first, last - first, length, size * (last - first) / count)


def _hops(time_s: float) -> float:
    """Return a time in hops, without floating-point noise."""
    return round(time_s / _HOP_S, 6)

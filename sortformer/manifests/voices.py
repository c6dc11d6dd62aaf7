"""Banks of single-speaker speech for simulation: ``segments.tsv``, from LibriSpeech or a manifest with references."""

import math
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sortformer.annotation import Diarization, last_end
from sortformer.errors import InputError
from sortformer.formats.names import check_path, without_white_space
from sortformer.formats.source import read_text
from sortformer.formats.write import write_text
from sortformer.intervals import union
from sortformer.manifests.entry import Entry
from sortformer.manifests.references import own_turns, regions_of
from sortformer.manifests.tree import Tree, duration_of
from sortformer.unnamed import is_label_of_a_program

__all__ = ["COLUMNS", "Utterance", "from_librispeech", "voices_of", "write_bank"]

COLUMNS = ("file", "speaker", "split", "gender", "start_s", "end_s")
"""The columns of ``segments.tsv``."""


class Utterance(NamedTuple):
    """A segment of one speaker, whose name starts with the corpus and an underscore."""

    file: Path
    speaker: str
    split: str
    gender: str
    start_s: float
    end_s: float


def from_librispeech(corpus: str | Path) -> list[Utterance]:
    """Return all utterances of LibriSpeech: train-* is the split train, dev-* is dev, test-* is test.

    Args:
        corpus: the folder with ``SPEAKERS.TXT``, as unpacked from the archives (``LibriSpeech``); any of the subsets.

    Raises:
        InputError: when it is not LibriSpeech, has no subset, or the duration of a recording is unknown.
    """
    corpus = Path(corpus)
    gender = {}
    for line in read_text(corpus / "SPEAKERS.TXT").split("\n"):
        fields = [field.strip() for field in line.split("|")]
        if len(fields) >= 3:
            gender[fields[0]] = fields[1].lower()
    found = []
    for path in Tree.of(corpus, {".flac", ".wav", ".opus"}):
        split = path.relative_to(corpus).parts[0].partition("-")[0]
        speaker = path.stem.partition("-")[0]
        if split in ("train", "dev", "test"):
            found.append(
                Utterance(path, f"librispeech_{speaker}", split, gender.get(speaker, ""), 0.0, duration_of(path))
            )
    if not found:
        raise InputError(f"{corpus} has none of LibriSpeech's subsets (train-clean-100, ...)")
    return found


def voices_of(
    entries: Iterable[Entry], split: str, corpus: str, shortest_s: float = 1.0, shared_names: bool = False
) -> list[Utterance]:
    """Return the segments of recordings in which exactly one speaker is active, as utterances of that speaker.

    Time outside the UEM of a recording is omitted, because it is not annotated.

    Args:
        split: their split.
        corpus: the prefix of the speakers' names.
        shortest_s: shorter segments are omitted.
        shared_names: a name, unlike a label such as ``speaker_0``, means the same person in all recordings; else only
            within a recording, in all windows of it, and then it is prefixed by the id of the first of these.

    Raises:
        InputError: when an entry has no usable RTTM, or there is no such segment.
    """
    found = []
    known: dict[str, str] = {}
    length_of = cache(duration_of)  # there may be thousands of windows of a recording
    for entry in entries:
        recording = known.setdefault(os.path.realpath(entry.audio), entry.id)
        length, regions = length_of(entry.audio), regions_of(entry)
        parts = ((0.0, entry.duration or math.inf),) if regions is None else union(regions)
        turns = own_turns(entry)
        for turn in Diarization(turns, last_end(turns)).alone().merge():
            shared = shared_names and not is_label_of_a_program(turn.speaker)
            name = turn.speaker if shared else f"{recording}_{turn.speaker}"
            for first, last in parts:
                start, end = max(turn.start, entry.offset + first), min(turn.end, entry.offset + last, length)
                if end - start >= shortest_s:
                    found.append(Utterance(entry.audio, f"{corpus}_{name}", split, "", start, end))
    if not found:
        raise InputError(f"nobody speaks alone for {shortest_s:g} s in any of the recordings of {split!r}")
    return found


def write_bank(folder: str | Path, utterances: Iterable[Utterance], *, overwrite: bool = False) -> Path:
    """Write ``segments.tsv``, which makes a folder a voice bank; the recordings stay where they are.

    Raises:
        InputError: when the file exists and ``overwrite`` is not set, or a path cannot be written as a line of UTF-8.
    """
    target, utterances = Path(folder) / "segments.tsv", list(utterances)
    for file in dict.fromkeys(each.file for each in utterances):
        check_path(file)
    rows = [
        (
            *(os.path.realpath(each.file), without_white_space(each.speaker), each.split, each.gender),
            *(f"{each.start_s:.3f}", f"{each.end_s:.3f}"),
        )
        for each in utterances
    ]
    write_text(target, "".join("\t".join(row) + "\n" for row in (COLUMNS, *rows)), overwrite=overwrite)
    return target

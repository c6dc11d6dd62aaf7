"""Validation of manifests, before hours are spent on them."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sortformer.annotation import Turn, last_end
from sortformer.audio import AudioWarning
from sortformer.errors import InputError
from sortformer.heard import Heard
from sortformer.manifests.entry import SLACK_S, Entry
from sortformer.manifests.jsonl import read_lines
from sortformer.manifests.references import other_names, own_turns, reference_of, regions_of
from sortformer.manifests.statistics import Statistics
from sortformer.manifests.tree import stored_duration_of

__all__ = ["Checked", "Problem", "check"]

_SILENCE = 10 ** (-60 / 20)  # peak, relative to full scale
_NUMBERED = re.compile(r"(spk|spkr|speaker|channel|s)?[_-]?\d+|[a-z]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to fix before training or scoring."""

    manifest: Path
    recording: str | None  # None: it is about the whole manifest
    what: str

    def __str__(self) -> str:
        return ": ".join(str(part) for part in (self.manifest, self.recording, self.what) if part is not None)


@dataclass(frozen=True, slots=True)
class Checked:
    """The problems, the possible problems, and the statistics of each manifest."""

    problems: tuple[Problem, ...]
    doubts: tuple[Problem, ...]
    statistics: dict[Path, Statistics]


def check(manifests: Sequence[str | Path], *, listen: bool = True) -> Checked:
    """Check manifests, each of which counts as a split of its own.

    Problems are: a missing or broken recording, RTTM or UEM; a recording without a reference, or without a turn in it;
    turns, scored parts or a window that end after the file; a UEM with nothing of the recording; a number of speakers
    that is not the manifest's; a duplicate id or window; silent or damaged audio, or the same in two files; a
    recording, file or speaker in two splits; no recording at all. Names that only number speakers (``spk01``, ``A``)
    are assumed to mean different people in each recording. A doubt is an RTTM or UEM about one recording with another
    name, or with the turns of another: it may be the wrong file; a speaker in two turns at once: one may be somebody
    else's; two names that differ only in case: they may be one person's; confidences of all turns, which a turn that
    was corrected on the page does not have: it may still be the model's result; and the only window of a file, from
    its start, that turns go on after: its duration may be wrong. A manifest without any reference is one problem, or a
    doubt if no manifest has any: these were made to diarize.

    Args:
        listen: decode the recordings, which finds silence, damage and copies; else only their headers are read.

    Raises:
        InputError: when a manifest itself cannot be read, or is given twice.
    """
    paths = [Path(manifest) for manifest in manifests]
    if twice := [path for path, times in Counter(paths).items() if times > 1]:
        raise InputError(f"{twice[0]} is given twice: give each split once, as a manifest of its own")
    problems: list[Problem] = []
    doubts: list[Problem] = []
    statistics: dict[Path, Statistics] = {}
    owner: dict[str, Path] = {}
    files: dict[bytes | tuple[Turn, ...], Path] = {}  # the first with such samples, and with such turns
    spellings: dict[tuple[str, str], list[str]] = {}
    lists = [(path, read_lines(path)) for path in paths]
    to_diarize = all(entry.rttm is None for _, entries in lists for entry in entries)
    for path, entries in lists:
        found: list[tuple[str | None, str]] = [*_repeated(entries)]
        without = [entry.id for entry in entries if entry.rttm is None]
        if not entries:
            found.append((None, "it has no recordings"))
        elif len(without) == len(entries):
            bare = Problem(path, None, "it has no references ('rttm_filepath'): it can only be diarized")
            (doubts if to_diarize else problems).append(bare)
        else:
            found += [(name, "it has no reference ('rttm_filepath')") for name in without]
        total = Statistics()
        windows = Counter(os.path.realpath(entry.audio) for entry in entries)
        for entry in entries:
            look = _look(entry, listen, windows[os.path.realpath(entry.audio)] == 1)
            total += Statistics.of(look.turns, look.length_s)
            found += [(entry.id, what) for what in look.problems]
            doubts += [Problem(path, entry.id, doubt) for doubt in look.doubts]
            here = Path(os.path.realpath(entry.audio))
            if look.samples and (other := files.setdefault(look.samples, here)) != here:
                found.append((entry.id, f"{entry.audio} has the same audio as {other}"))
            elif len(look.own) > 1 and (other := files.setdefault(look.own, here)) != here:
                doubts.append(Problem(path, entry.id, f"its turns are those of {other}: is the reference its own?"))
            doubts += [Problem(path, entry.id, doubt) for doubt in _respelled(entry, look.turns or (), spellings)]
            for what in _belongings(entry, look.turns or ()):
                if owner.setdefault(what, path) != path:
                    found.append((entry.id, f"{what} is also in {owner[what]}"))
        problems += [Problem(path, *each) for each in dict.fromkeys(found)]
        statistics[path] = total
    return Checked(tuple(problems), tuple(doubts), statistics)


def _repeated(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Yield ids of entries whose id or window of a file is a duplicate, with the problem."""
    ids: set[str] = set()
    windows: dict[tuple[str, float, float | None], str] = {}
    for entry in entries:
        window = (os.path.realpath(entry.audio), entry.offset, entry.duration)
        if entry.id in ids:
            yield entry.id, "another recording has the same id"
        elif (other := windows.setdefault(window, entry.id)) != entry.id:
            yield entry.id, f"{entry.audio} is also the recording {other!r}"
        ids.add(entry.id)


def _belongings(entry: Entry, turns: Sequence[Turn]) -> Iterator[str]:
    """Yield what must not be in two splits: the recording, its file and its named speakers."""
    yield f"the recording {entry.id!r}"
    yield f"the file {os.path.realpath(entry.audio)}"
    for speaker in sorted({turn.speaker for turn in turns}):
        if not _NUMBERED.fullmatch(speaker):
            yield f"the speaker {speaker!r}"


def _respelled(entry: Entry, turns: Sequence[Turn], spellings: dict[tuple[str, str], list[str]]) -> Iterator[str]:
    """Yield speakers whose names differ only in case from another one so far; ``spellings`` has all of these."""
    for speaker in sorted({turn.speaker for turn in turns}):
        place = entry.id if _NUMBERED.fullmatch(speaker) else ""  # numbers of another recording are other people
        known = spellings.setdefault((place, speaker.casefold()), [])
        if speaker not in known:
            if known:
                yield f"the speaker {speaker!r} is also written {known[0]!r}: is this one person?"
            known.append(speaker)


@dataclass(frozen=True, slots=True)
class _Look:
    """The result of checking one entry."""

    problems: tuple[str, ...]
    length_s: float | None
    turns: tuple[Turn, ...] | None
    own: tuple[Turn, ...]
    """All turns of its file; ``turns`` are those of a window."""
    samples: bytes | None
    """Hash of the audio, None if it is silent or was not decoded."""
    doubts: tuple[str, ...]


def _look(entry: Entry, listen: bool, only: bool) -> _Look:
    """Check one entry; ``only`` if there is no other of its file."""
    problems: list[str] = []
    doubts: list[str] = []
    whole_s = samples = None
    try:
        whole_s, samples, fault = _heard(entry.audio) if listen else (stored_duration_of(entry.audio), None, None)
        problems += [fault] if fault else []
    except InputError as error:
        problems.append(str(error))
    if whole_s is not None and entry.offset + (entry.duration or 0.0) > whole_s + SLACK_S:
        problems.append(f"it ends at {entry.offset + (entry.duration or 0.0):.2f} s, its file at {whole_s:.2f} s")
    turns, own = None, ()
    if entry.rttm is not None:
        try:
            turns, own = reference_of(entry), own_turns(entry)
            problems += _turn_problems(entry, own, turns, whole_s)
        except InputError as error:
            problems.append(str(error))
    try:
        parts = regions_of(entry)
        if parts == ():
            problems.append("its UEM has no part of it: are the times seconds of the file?")
        last = max((entry.offset + end for _, end in parts or ()), default=0.0)
        if whole_s is not None and last > whole_s + SLACK_S:
            problems.append(f"the UEM ends at {last:.2f} s, the recording at {whole_s:.2f} s")
    except InputError as error:
        problems.append(str(error))
    doubts += [f"{file} is for {name!r}: does it belong to this recording?" for file, name in other_names(entry)]
    doubts += _twice_at_once(own)
    if own and all(turn.confidence is not None for turn in own):
        doubts.append("all of its turns have a confidence, like a result: has nobody corrected it?")
    end_s = entry.duration if only and not entry.offset else None
    if end_s is not None and whole_s is not None and end_s + SLACK_S < min(whole_s, last_end(own)):
        doubts.append(f"its file and its turns go on after its 'duration' of {end_s:.2f} s: is it meant to end there?")
    rest_s = None if whole_s is None else max(0.0, whole_s - entry.offset)
    length_s = rest_s if entry.duration is None else entry.duration
    return _Look(tuple(problems), length_s, turns, own, samples, tuple(doubts))


def _twice_at_once(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the first of sorted turns that begins well before the last one of its speaker ends."""
    ends: dict[str, float] = {}
    for turn in turns:
        if min(ends.get(turn.speaker, 0.0), turn.end) > turn.start + SLACK_S:
            yield f"two turns of {turn.speaker!r} overlap at {turn.start:.2f} s: is one somebody else's?"
            return
        ends[turn.speaker] = max(ends.get(turn.speaker, 0.0), turn.end)


def _turn_problems(entry: Entry, own: Sequence[Turn], turns: Sequence[Turn], whole_s: float | None) -> list[str]:
    """Return the problems of the ``own`` turns of the file, and of ``turns``, those of the entry, perhaps a window."""
    problems = []
    last, speakers = last_end(own), len({turn.speaker for turn in turns})
    if whole_s is not None and last > whole_s + SLACK_S:
        problems.append(f"the reference ends at {last:.2f} s, the recording at {whole_s:.2f} s")
    if not turns:
        problems.append("nobody speaks in its reference")
    elif entry.num_speakers is not None and entry.num_speakers != speakers:
        problems.append(f"'num_speakers' is {entry.num_speakers}, the reference has {speakers}")
    return problems


def _heard(path: Path) -> tuple[float, bytes | None, str | None]:
    """Return the duration of a recording in seconds, a hash of its samples if it has sound, and its problems."""
    heard, samples = Heard(path), hashlib.blake2b()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AudioWarning)
        for block in heard.blocks():
            samples.update(block.tobytes())
    faults = [str(warning.message) for warning in caught if issubclass(warning.category, AudioWarning)]
    silent = heard.peak < _SILENCE
    if silent:
        faults.append("it is silent: no sample reaches -60 dBFS")
    return heard.seconds, None if silent else samples.digest(), "; ".join(faults) or None

"""The reference of an entry, from its files: its turns and the parts to score."""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import rttm, uem
from sortformer.formats.names import without_white_space
from sortformer.intervals import Regions, clipped
from sortformer.manifests.entry import Draft, Entry

__all__ = ["names_of", "other_names", "own_turns", "reference_of", "regions_of", "with_speakers"]

Value = TypeVar("Value")


def own_turns(entry: Entry) -> tuple[Turn, ...]:
    """Return the turns of an entry in its RTTM, with times relative to the audio file.

    A file about one recording is taken to be about this one, whatever its name there, as in NeMo; one about several may
    have a window under the name of its recording.

    Raises:
        InputError: when there is no RTTM, or it is missing or broken, or has several recordings but not this one.
    """
    if entry.rttm is None:
        raise InputError(
            f"the manifest names no RTTM ('rttm_filepath') for {entry.id!r}, {entry.audio}: name one, or remove the "
            "entry"
        )
    return _about(entry, _read(entry.rttm, "rttm_filepath", rttm.read) or {entry.id: ()}, entry.rttm)


def other_names(entry: Entry) -> Iterator[tuple[Path, str]]:
    """Yield the RTTM and the UEM that are about only one recording, if its name is not one of the entry, and that name.

    One that is missing or broken is passed over.
    """
    for path, parse in ((entry.rttm, rttm.read), (entry.uem, uem.read)):
        if path is None:
            continue
        names = set[str]()
        with suppress(InputError):
            names.update(_content(path, parse))
        if len(names) == 1 and not names & set(names_of(entry)):
            yield path, names.pop()


def names_of(entry: Entry) -> tuple[str, str]:
    """Return the names that an entry may have in files: its id, or the name of its recording."""
    return entry.id, without_white_space(entry.audio.stem)


def _read(path: Path, field: str, read: Callable[[Path], Mapping[str, Value]]) -> Mapping[str, Value]:
    if not os.path.lexists(path):  # a placeholder such as "-" looks like no path: say what it is
        raise InputError(f"the '{field}' {path} does not exist: if there is none, leave the field out")
    return _content(path, read)


def _content(path: Path, read: Callable[[Path], Mapping[str, Value]]) -> Mapping[str, Value]:
    if path.is_file():  # a pipe can be read only once
        with suppress(OSError):  # which ``read`` explains
            return _parsed(path, read, path.read_bytes())
    return read(path)


@lru_cache(maxsize=2)  # the entries of a manifest may share one RTTM and one UEM
def _parsed(path: Path, read: Callable[[Path], Any], _key: bytes) -> Any:
    return read(path)


def _about(entry: Entry, found: Mapping[str, Value], path: Path) -> Value:
    """Return the content of a file about an entry."""
    for name in names_of(entry):
        if name in found:
            return found[name]
    if len(found) != 1:
        raise InputError(f"{path} has nothing for {entry.id!r}, only for {len(found)} other recordings")
    return next(iter(found.values()))


def reference_of(entry: Entry) -> tuple[Turn, ...]:
    """Return the turns of an entry, with times relative to its start, up to its end if that is known.

    Raises:
        InputError: when it has no usable RTTM.
    """
    return _within(entry, own_turns(entry))


def _within(entry: Entry, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return what an entry has of the turns of its audio file, with times relative to its start."""
    last = max([entry.offset, *(turn.end for turn in turns)])
    end = last if entry.duration is None else entry.offset + entry.duration
    return Diarization(turns, max(last, end), entry.id).crop(entry.offset, end).turns


def with_speakers(draft: Draft) -> Draft:
    """Return a draft with the number of speakers in its reference, if it has one in which somebody speaks.

    Raises:
        InputError: when its RTTM is not usable.
    """
    entry = draft.entry
    if entry.num_speakers is not None or (draft.turns is None and entry.rttm is None):
        return draft
    turns = _within(entry, own_turns(entry) if draft.turns is None else draft.turns)
    return replace(draft, entry=replace(entry, num_speakers=len({turn.speaker for turn in turns}) or None))


def regions_of(entry: Entry) -> Regions | None:
    """Return the parts to score, with times relative to the entry's start; None if it has no UEM.

    Raises:
        InputError: when the UEM is missing or broken, or has several recordings but not this one.
    """
    if entry.uem is None:
        return None
    parts = _about(entry, _read(entry.uem, "uem_filepath", uem.read), entry.uem)
    length = math.inf if entry.duration is None else entry.duration
    return clipped(((start - entry.offset, end - entry.offset) for start, end in parts), 0.0, length)

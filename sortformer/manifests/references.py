"""What an entry's files say about it: its turns and the parts to score."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from sortformer.annotation import Diarization, Turn, clipped
from sortformer.errors import InputError
from sortformer.formats import rttm, uem
from sortformer.formats.names import without_white_space
from sortformer.formats.uem import Regions
from sortformer.manifests.entry import Entry

__all__ = ["other_name", "own_turns", "reference_of", "regions_of"]

Value = TypeVar("Value")


def own_turns(entry: Entry) -> tuple[Turn, ...]:
    """Return the turns that the RTTM of an entry gives it, in the file's own time.

    A file about one recording is taken to be about this one whatever it calls it, as NeMo does; one about several may
    know a window by the name of its recording.

    Raises:
        InputError: when it has no RTTM, or that is missing or broken, or speaks of several recordings and not of this
            one.
    """
    if entry.rttm is None:
        raise InputError(f"the manifest names no RTTM ('rttm_filepath') for {entry.id!r}")
    return _about(entry, rttm.read(entry.rttm) or {entry.id: ()}, entry.rttm)


def other_name(entry: Entry) -> str | None:
    """Return what an RTTM about one recording calls it, where that is not as the entry does; else None.

    Raises:
        InputError: when it is missing or broken.
    """
    found = {} if entry.rttm is None else rttm.read(entry.rttm)
    return None if len(found) != 1 or set(_names(entry)) & set(found) else next(iter(found))


def _names(entry: Entry) -> tuple[str, str]:
    """What files may call an entry: as it is called, or by the name of its recording."""
    return entry.id, without_white_space(entry.audio.stem)


def _about(entry: Entry, found: Mapping[str, Value], path: Path) -> Value:
    """What a file says about an entry."""
    for name in _names(entry):
        if name in found:
            return found[name]
    if len(found) != 1:
        raise InputError(f"{path} says nothing about {entry.id!r}, only about {len(found)} other recordings")
    return next(iter(found.values()))


def reference_of(entry: Entry) -> tuple[Turn, ...]:
    """Return who speaks when in an entry, from its start on, and up to its end where that is known.

    Raises:
        InputError: when it has no RTTM, or that cannot be used.
    """
    turns = own_turns(entry)
    last = max([entry.offset, *(turn.end for turn in turns)])
    end = last if entry.duration is None else entry.offset + entry.duration
    return Diarization(turns, max(last, end), entry.id).crop(entry.offset, end).turns


def regions_of(entry: Entry) -> Regions | None:
    """Return the parts to score, from the entry's start on; None where it has no UEM.

    Raises:
        InputError: when the UEM is missing or broken, or speaks of several recordings and not of this one.
    """
    if entry.uem is None:
        return None
    parts = _about(entry, uem.read(entry.uem), entry.uem)
    length = math.inf if entry.duration is None else entry.duration
    return clipped(((start - entry.offset, end - entry.offset) for start, end in parts), 0.0, length)

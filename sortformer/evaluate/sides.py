"""Where references come from: RTTM files, folders of them, or manifests, which also know lengths and scored parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sortformer.annotation import Diarization, shifted
from sortformer.errors import InputError
from sortformer.formats.gather import turns_in, uem_in
from sortformer.formats.uem import Regions
from sortformer.manifests import Entry, is_manifest, read
from sortformer.manifests.references import reference_of, regions_of
from sortformer.metrics.der import Turns

__all__ = ["Truth", "truth_in"]


@dataclass(frozen=True, slots=True)
class Truth:
    """Who speaks when, by recording, and the parts to score where those are given."""

    turns: Mapping[str, Turns]
    uem: Mapping[str, Regions] | None = None


def truth_in(path: str | os.PathLike[str], uem: str | os.PathLike[str] | None = None) -> Truth:
    """Return what an RTTM file, a folder of RTTM or a manifest knows; a UEM (file or folder) goes before a manifest's.

    All times are those of the files, also for windows of them. Where some entries of a manifest are windows or have a
    UEM, the others are scored whole.

    Raises:
        InputError: when a path is missing or broken, or such an entry has no duration.
    """
    given = None if uem is None else uem_in(Path(uem))
    if not is_manifest(path):
        return Truth(turns_in(Path(path)), given)
    entries = read(path)
    turns = {entry.id: _turns(entry) for entry in entries}
    if given is None and any(entry.uem or entry.offset for entry in entries):
        given = {entry.id: _parts(entry) for entry in entries}
    return Truth(turns, given)


def _turns(entry: Entry) -> Turns:
    found = reference_of(entry)
    return found.shift(entry.offset) if isinstance(found, Diarization) else shifted(found, entry.offset)


def _parts(entry: Entry) -> Regions:
    parts = regions_of(entry)
    if parts is None and entry.duration is None:
        raise InputError(f"the manifest gives {entry.id!r} neither a UEM nor a duration; add one of them")
    parts = ((0.0, entry.duration or 0.0),) if parts is None else parts
    return tuple((start + entry.offset, end + entry.offset) for start, end in parts)

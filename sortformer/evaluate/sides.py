"""Where references come from: RTTM files, folders of them, or manifests, which also know lengths and scored parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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

    Where some entries of a manifest have a UEM, the others are scored whole.

    Raises:
        InputError: when a path is missing or broken, or such an entry has no duration.
    """
    given = None if uem is None else uem_in(Path(uem))
    if not is_manifest(path):
        return Truth(turns_in(Path(path)), given)
    entries = read(path)
    turns = {entry.id: reference_of(entry) for entry in entries}
    if given is None and any(entry.uem for entry in entries):
        given = {entry.id: regions_of(entry) or _whole(entry) for entry in entries}
    return Truth(turns, given)


def _whole(entry: Entry) -> Regions:
    if entry.duration is None:
        raise InputError(f"the manifest gives {entry.id!r} neither a UEM nor a duration; add one of them")
    return ((0.0, entry.duration),)

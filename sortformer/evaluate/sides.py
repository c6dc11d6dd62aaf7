"""References from files of turns, folders of these, or manifests with durations and scored parts."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sortformer.annotation import Diarization, Turn, Turns
from sortformer.errors import InputError
from sortformer.formats.gather import holds_turns, turns_in, uem_in, warn_of_others
from sortformer.intervals import Regions, clipped
from sortformer.manifests import Entry, is_manifest, read
from sortformer.manifests.entry import SLACK_S
from sortformer.manifests.references import names_of, own_turns, regions_of

__all__ = ["Truth", "truth_in"]


@dataclass(frozen=True, slots=True)
class Truth:
    """The reference turns and, if given, the parts to score, by recording id.

    ``windows`` are the recordings that are only a part of their file; they have all turns of the file.
    """

    turns: Mapping[str, Turns]
    uem: Mapping[str, Regions | None] | None = None
    windows: frozenset[str] = frozenset()


def truth_in(path: str | os.PathLike[str], uem: str | os.PathLike[str] | None = None) -> Truth:
    """Return the references of a manifest, or of a file or folder of turns in any format that ``turns_in`` reads.

    ``uem`` (file or folder) overrides the manifest's UEM, and names an entry by its id or else by its file. Times are
    relative to the files, also for windows of them: a window is scored like a part in a UEM, so that there is no
    border, and no collar, where it cuts a turn. A window that starts at the start of its file is recognised by turns
    after its end. If some entries of a manifest start within their file, or have a UEM, the others are scored whole.

    Raises:
        InputError: when a path is missing or broken, or an entry whose scored parts have to be known has neither a UEM
            nor a duration, and its recording is missing, does not tell its own, or ends before the entry begins.

    Warns:
        SortformerWarning: when a folder has turns of several kinds.
    """
    given = None if uem is None else uem_in(Path(uem))
    if not is_manifest(path) or holds_turns(Path(path)):
        warn_of_others(Path(path))
        return Truth(turns_in(Path(path)), given)
    entries = read(path)
    own = {entry.id: own_turns(entry) for entry in entries}
    windows = {entry.id: _window(entry) for entry in entries if _is_window(entry, own[entry.id])}
    whole = {
        entry.id: Diarization(own[entry.id], entry.duration, entry.id)
        for entry in entries
        if entry.duration is not None and entry.id not in windows
    }
    if given is not None:
        named = {entry.id: name for entry in entries for name in reversed(names_of(entry)) if name in given}
        given |= {uri: clipped(given[name], *windows.get(uri, (0.0, math.inf))) for uri, name in named.items()}
    elif any(entry.uem or entry.offset for entry in entries):
        given = {entry.id: _parts(entry) for entry in entries}
    elif windows:  # recognised by turns after their ends
        given = {entry.id: _parts(entry) if entry.id in windows else None for entry in entries}
    return Truth(own | whole, given, frozenset(windows))


def _is_window(entry: Entry, turns: tuple[Turn, ...]) -> bool:
    """Return whether an entry is only a part of its file: it starts within it, or has turns after its end."""
    _, end = _window(entry)
    return entry.offset > 0 or any(turn.end > end + SLACK_S for turn in turns)


def _window(entry: Entry) -> tuple[float, float]:
    return entry.offset, math.inf if entry.duration is None else entry.offset + entry.duration


def _parts(entry: Entry) -> Regions:
    parts = regions_of(entry)
    if parts is not None:
        return tuple((start + entry.offset, end + entry.offset) for start, end in parts)
    start, end = _window(entry)
    return ((start, _end_of_file(entry) if end == math.inf else end),)


def _end_of_file(entry: Entry) -> float:
    from sortformer.manifests.tree import duration_of  # imports the decoders, which scoring needs only here

    if not entry.audio.is_file():
        raise InputError(
            f"the manifest has neither a UEM nor a duration for {entry.id!r}, and {entry.audio} is no file: add one "
            "of them"
        )
    length = duration_of(entry.audio)
    if length <= entry.offset:
        raise InputError(f"{entry.audio} ends at {length:.2f} s, before its window {entry.id!r} begins")
    return length

"""A manifest of a folder with recordings and their references, in any arrangement."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from sortformer.annotation import Diarization, Turn, last_end
from sortformer.errors import InputError, listed
from sortformer.formats import rttm, uem
from sortformer.formats.folders import AUDIO_SUFFIXES
from sortformer.formats.gather import KINDS, is_rttm, turns_in, warn_of_kinds
from sortformer.formats.names import without_white_space
from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.tree import Tree, duration_of
from sortformer.warned import warn

__all__ = ["from_folder"]

Value = TypeVar("Value")

_NAMES = ", ".join(KINDS)


def from_folder(folder: str | Path, references: str | Path | None = None) -> list[Draft]:
    """Return all recordings in a folder and below it, with the RTTM and the UEM about them.

    A reference is matched by the recording ids in it, which are file names without suffix. If it has a single id, and
    no recording has that name, it is matched by its own file name instead, unless that is an id in another reference.
    The name of a recording may be longer: ``ES2002a.Mix-Headset.wav`` matches ``ES2002a`` if no reference has the id
    ``ES2002a.Mix-Headset``, and no recording the name ``ES2002a``. A recording without a reference gets an entry
    without one.

    Args:
        references: the folder (or the file) with the references, if they are elsewhere or not RTTM: in a folder the
            first kind that occurs, in the order of :func:`~sortformer.formats.gather.turns_in` but JSON last; a file
            in any of its formats.

    Raises:
        InputError: when a folder is missing, there is no recording, two have the same name, a file is broken, two
            references of a recording differ, or there are none in ``references``, or none about the recordings.

    Warns:
        SortformerWarning: when the folder ``references`` has references of several kinds, or a reference or UEM file is
            about no recording.
    """
    recordings = Tree.of(folder, AUDIO_SUFFIXES)
    elsewhere = Path(references) if references is not None else Path(folder)
    names: dict[str, Path] = {}
    for path in recordings:  # first, because their references compete, too, and none of those has to go
        name = without_white_space(path.stem)
        if (other := names.setdefault(name, path)) != path:
            raise InputError(f"{other} and {path} are both called {name!r}; rename one, and the files about it")
    kind = ".rttm" if references is None else _kind(elsewhere)
    try:
        turns = _by_id(elsewhere, kind, _in_rttm, names)
    except InputError as error:
        if kind != ".json" or not elsewhere.is_dir():
            raise
        raise InputError(f"{references} and its subfolders have no {_NAMES} files, only JSON: {error}") from error
    regions = _by_id(elsewhere, ".uem", uem.read, names) if elsewhere.is_dir() else {}
    lengths = _each(recordings, duration_of)
    turns_of = cache(turns_in)  # a file may be about thousands of recordings
    drafts = []
    for path in recordings:
        name = _known(without_white_space(path.stem), turns, names)
        source, alone = turns.get(name, (None, True))
        own = source if source is not None and alone and is_rttm(source) else None
        there = regions[name][0] if name in regions else None
        entry = Entry(name, path, duration=lengths[path], rttm=own, uem=there)
        drafts.append(Draft(entry, None if source is None or own else _turns(turns_of(source), name)))
    if not drafts:
        raise InputError(f"{folder} and its subfolders have no recordings")
    if references is not None and all(draft.turns is None and draft.entry.rttm is None for draft in drafts):
        if not turns:
            raise InputError(f"{references} and its subfolders have no {_NAMES} or .json files")
        raise InputError(
            f"{references} matches none of the recordings in {folder} by name: it is for {listed(sorted(turns))}, they "
            f"are {listed(sorted(names))}; give them the same names, for example by links"
        )
    ids = {draft.entry.id for draft in drafts}
    for what, side in (("references", turns), ("UEM files", regions)):
        used = {path for name, (path, _) in side.items() if name in ids}
        if unused := sorted({path for path, _ in side.values()} - used):
            warn(f"these {what} belong to no recording in {folder}: {listed([*map(str, unused)])}", stacklevel=2)
    return drafts


def _each(paths: Iterable[Path], read: Callable[[Path], Value]) -> dict[Path, Value]:
    """Return the content of each file; raise one InputError for all files that cannot be read."""
    found: dict[Path, Value] = {}
    broken = []
    for path in paths:
        try:
            found[path] = read(path)
        except InputError as error:
            broken.append(str(error))
    if broken:
        more = f" ({len(broken)} such files; the others: {'; '.join(broken[1:])})" if len(broken) > 1 else ""
        raise InputError(f"{broken[0]}{more}")
    return found


def _known(name: str, turns: Collection[str], names: Collection[str]) -> str:
    """Return the id of a recording: the longest part of its name, up to a dot, that has a reference, else the name.

    A part that is the name of another of the recordings (``names``) is the id of that one.
    """
    short = name
    while short not in turns and "." in short:
        short = short.rpartition(".")[0]
        if short in names:
            return name
    return short if short in turns else name


def _kind(place: Path) -> str:
    """Return the extension of the references in a folder: the first kind that occurs, else JSON; warn of others."""
    there = [kind for kind in KINDS if place.is_dir() and Tree.of(place, {kind}).files]
    warn_of_kinds(place, there)  # RTTM beside a manifest in the folder is what it was before it was corrected elsewhere
    return there[0] if there else ".json"


def _turns(found: Mapping[str, tuple[Turn, ...]], name: str) -> tuple[Turn, ...]:
    """Return the turns of a recording in a file; one about a single recording may call it otherwise."""
    return found[name] if name in found else next(iter(found.values()), ())


def _in_rttm(path: Path) -> dict[str, str]:
    """Return the turns of each recording as normalised RTTM, so that they can be compared."""
    return {uri: rttm.format(Diarization(turns, last_end(turns), uri)) for uri, turns in turns_in(path).items()}


def _by_id(
    place: Path, suffix: str, read: Callable[[Path], Mapping[str, Any]], names: Collection[str]
) -> dict[str, tuple[Path, bool]]:
    """Return, for each recording, a file about it, and whether that file is about no other recording.

    Two files about one recording must have the same content: one may have been written beside a manifest.
    """
    files = Tree.of(place, {suffix}) if place.is_dir() else [place]
    found: dict[str, tuple[Path, bool]] = {}
    said: dict[str, Any] = {}
    by_name: dict[str, tuple[Path, bool]] = {}
    for path, content in _each(files, read).items():
        own = without_white_space(path.stem)
        about = content or {own: None}
        ids = list(about)
        for name in ids:
            if name in found and said[name] != about[name]:
                raise InputError(
                    f"{found[name][0]} and {path} are both for {name!r}; keep one of them, or correct the id in it"
                )
            said[name] = about[name]
            found.setdefault(name, (path, len(ids) == 1))
        if len(ids) == 1 and own in names and ids[0] not in names:
            other = by_name.setdefault(own, (path, True))[0]
            if other != path and own not in found:
                raise InputError(f"{other} and {path} are both for {own!r}, by their names; keep one of them")
    return by_name | found

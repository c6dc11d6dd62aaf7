"""Files of a corpus by name, wherever they are in its folders."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sortformer.audio import probe
from sortformer.audio.sources import recording_in
from sortformer.errors import InputError, refusal
from sortformer.formats.folders import is_visible_file

__all__ = ["Tree", "check_complete", "duration_of", "stored_duration_of"]

_NOT_OURS = {"__MACOSX", "lost+found", "System Volume Information"}  # made by archivers and file systems


@dataclass(frozen=True, slots=True)
class Tree:
    """The files under a folder with certain suffixes, by name; without hidden ones and those of file systems.

    Broken links are included, but not found by name.
    """

    root: Path
    files: Mapping[str, tuple[Path, ...]]

    @classmethod
    def of(cls, root: str | Path, suffixes: Collection[str]) -> Tree:
        """Search a folder and all folders below it, also linked ones.

        Raises:
            InputError: when there is no such folder, or one cannot be read.
        """
        root = Path(root)
        if not root.is_dir():
            raise InputError(f"there is no folder {root}")
        found: dict[str, list[Path]] = {}
        for path in sorted(_below(root)):
            if path.name.lower().endswith(tuple(suffixes)) and is_visible_file(path):
                found.setdefault(path.name, []).append(path)
        return cls(root, {name: tuple(paths) for name, paths in found.items()})

    def __iter__(self) -> Iterator[Path]:
        return (path for paths in self.files.values() for path in paths)

    def find(self, name: str) -> Path | None:
        """Return the file of that name, None if there is none.

        Raises:
            InputError: when there are several.
        """
        return _only(self.files.get(name, ()))

    def named(self, stem: str) -> Path | None:
        """Return the file with that name without its suffix, like ``find``."""
        return _only([path for path in self if path.stem == stem])

    def require(self, name: str, what: str) -> Path:
        """Return the file of that name.

        Raises:
            InputError: when there is none (``what`` describes it in the message), or several.
        """
        path = self.find(name)
        if path is None:
            raise InputError(f"{self.root} has no {name}, {what}")
        return path


def _below(root: Path) -> Iterator[Path]:
    """Yield what is in a folder and below it, except folders; each folder once, by a link only if it lies elsewhere."""

    def refuse(error: OSError) -> None:
        raise InputError(f"cannot read the folder {error.filename}: {refusal(error)}") from error

    seen, starts = set[str](), [str(root)]
    for start in starts:  # grows by the links that are found
        for folder, below, names in os.walk(start, onerror=refuse):
            place = os.path.realpath(folder)
            if place in seen:
                below.clear()
                continue
            seen.add(place)
            below[:] = sorted(name for name in below if not name.startswith(".") and name not in _NOT_OURS)
            for name in below:
                path = os.path.join(folder, name)
                if os.path.realpath(path) != os.path.join(place, name):  # a link, or a junction of Windows
                    starts.append(path)
            yield from (Path(folder, name) for name in names)


def _only(paths: Sequence[Path]) -> Path | None:
    there = [path for path in paths if path.exists()]
    if len(there) > 1:
        raise InputError(f"{there[0]} and {there[1]} have the same name; give the folder that holds only one of them")
    return there[0] if there else None


def check_complete(corpus: str | Path, missing: Sequence[str], split: str, remedy: str) -> None:
    """Check that no recordings of a split are missing.

    Raises:
        InputError: when any is; the message names the first, and what to do.
    """
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"{corpus} lacks {missing[0]} of {split}{more}; {remedy} it, or allow a partial corpus")


def duration_of(source: Path | BinaryIO) -> float:
    """Return the duration of a recording in seconds; where its header does not store it, the recording is decoded.

    Raises:
        InputError: when it is missing or not audio.
    """
    stored = stored_duration_of(source)
    if stored is not None:
        return stored
    with recording_in(source, None) as recording:
        return round(sum(map(len, recording.pieces)) / recording.rate, 6)


def stored_duration_of(source: Path | BinaryIO) -> float | None:
    """Return the duration that a recording's header stores, in seconds; None if it has none, or only an estimate.

    Raises:
        InputError: when it is missing or not audio.
    """
    found = probe(source)
    return None if found.duration_s is None or found.estimated else round(found.duration_s, 6)

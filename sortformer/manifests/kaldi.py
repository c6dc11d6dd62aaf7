"""A manifest of a Kaldi data directory: ``wav.scp``, and ``rttm`` or ``segments`` with ``utt2spk``."""

import re
from collections.abc import Iterator
from pathlib import Path

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats import rttm
from sortformer.formats.names import without_white_space
from sortformer.formats.source import Line, lines, read_text
from sortformer.json_values import path_of
from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.tree import duration_of

__all__ = ["from_kaldi"]

_IN_ARCHIVE = re.compile(r"\.ark:\d+$")  # a position in one (Kaldi, wav-copy)
_OPEN_ENDS = ("-1", "-1.0")  # the end of the recording (Kaldi, extract-segments)


def from_kaldi(folder: str | Path) -> list[Draft]:
    """Return the recordings of a Kaldi data directory (Kaldi, "Data preparation").

    Turns come from ``rttm``, else from ``segments`` and ``utt2spk``, else there are none; durations from ``reco2dur``,
    else from the recordings. Relative paths are relative to the working directory, as in Kaldi.

    Raises:
        InputError: when a file is missing or broken, ``wav.scp`` has a command, which is never run, or a position in an
            archive, or ``rttm`` has another name for a recording than ``wav.scp``.
    """
    folder = Path(folder)
    recordings = _recordings(folder / "wav.scp")
    known = {name: line.seconds(1, "duration") for name, line in _by_first(folder / "reco2dur").items()}
    durations = {name: known.get(name) or duration_of(path) for name, path in recordings.items()}
    turns = _turns(folder, durations)
    return [
        Draft(Entry(name, path, duration=durations[name]), None if turns is None else turns.get(name, ()))
        for name, path in recordings.items()
    ]


def _recordings(path: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for number, text in enumerate(read_text(path).split("\n"), start=1):
        name, source = [*text.split(maxsplit=1), "", ""][:2]
        name, source = without_white_space(name) if name else "", source.strip()
        if name and (not source or source.endswith("|") or _IN_ARCHIVE.search(source)):
            raise InputError(
                f"{path}, line {number}: {name!r} is {source or 'nothing'!r}, not a file; commands are not run, and "
                "archives not read: decode to files first, or name the file itself (sph, flac and others are read as "
                "they are)"
            )
        if name in found:
            raise InputError(f"{path}, line {number}: {name!r} occurs twice; keep one of the two")
        if name:
            found[name] = path_of(source, f"{path}, line {number}: the recording of {name!r}")
    return found


def _rows(path: Path, fields: int) -> Iterator[Line]:
    """Yield the lines of an optional file, each with ``fields`` fields."""
    if not path.exists():
        return
    for line in lines(read_text(path), str(path)):
        line.check_count(f"a line of {path.name}", fields)
        yield line


def _by_first(path: Path) -> dict[str, Line]:
    """Return the lines of an optional file with two fields, by the first."""
    found: dict[str, Line] = {}
    for line in _rows(path, 2):
        if line.fields[0] in found:
            raise line.error(f"{line.fields[0]!r} occurs twice; keep one of the two")
        found[line.fields[0]] = line
    return found


def _turns(folder: Path, durations: dict[str, float]) -> dict[str, tuple[Turn, ...]] | None:
    if (folder / "rttm").is_file():  # a folder of that name is one that we wrote beside a manifest
        known = rttm.read(folder / "rttm")
        without, others = [name for name in durations if name not in known], sorted(known.keys() - durations.keys())
        if without and others:  # if all have turns, the others may be those of a larger corpus
            raise InputError(
                f"{folder / 'rttm'} has no turns of {without[0]!r} in {folder / 'wav.scp'}, but some of "
                f"{others[0]!r}: give each recording the same name in both"
            )
        return known
    if not (folder / "segments").exists():
        return None
    speaker = {name: line.fields[1] for name, line in _by_first(folder / "utt2spk").items()}
    found: dict[str, list[Turn]] = {}
    for line in _rows(folder / "segments", 4):
        utterance, recording = line.fields[:2]
        if utterance not in speaker:
            raise line.error(f"{folder / 'utt2spk'} has no speaker for {utterance!r}")
        if recording not in durations:
            raise line.error(f"{folder / 'wav.scp'} has no recording {recording!r}")
        start = line.seconds(2, "start")
        end = durations[recording] if line.fields[3] in _OPEN_ENDS else line.seconds(3, "end")
        if start >= end:
            raise line.error(f"{utterance!r} ends at {end} s, not after its start at {start} s")
        found.setdefault(recording, []).append(Turn(start, end, speaker[utterance]))
    return {name: tuple(sorted(turns)) for name, turns in found.items()}

"""A manifest of a Kaldi data directory: ``wav.scp``, and ``rttm`` or ``segments`` with ``utt2spk``."""

from collections.abc import Iterator
from pathlib import Path

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats import rttm
from sortformer.formats.names import without_white_space
from sortformer.formats.source import Line, lines, read_text
from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.tree import duration_of

__all__ = ["from_kaldi"]


def from_kaldi(folder: str | Path) -> list[Draft]:
    """Return the recordings of a Kaldi data directory (Kaldi, "Data preparation").

    Turns come from ``rttm``, else from ``segments`` and ``utt2spk``, else there are none; lengths from ``reco2dur``,
    else from the recordings. Relative paths are as Kaldi takes them, from where the command is run.

    Raises:
        InputError: when a file is missing or broken, ``wav.scp`` holds a command, which is never run, or ``rttm`` knows
            a recording by another name than it.
    """
    folder = Path(folder)
    recordings = dict(_recordings(folder / "wav.scp"))
    durations = {line.fields[0]: line.seconds(1, "duration") for line in _rows(folder / "reco2dur", 2)}
    turns = _turns(folder, recordings)
    return [
        Draft(
            Entry(name, path, duration=durations.get(name) or duration_of(path)),
            None if turns is None else turns.get(name, ()),
        )
        for name, path in recordings.items()
    ]


def _recordings(path: Path) -> Iterator[tuple[str, Path]]:
    for number, text in enumerate(read_text(path).splitlines(), start=1):
        name, source = [*text.split(maxsplit=1), "", ""][:2]
        source = source.strip()
        if name and (not source or source.endswith("|")):
            raise InputError(
                f"{path}, line {number}: {name!r} is no file but {source or 'nothing'!r}; commands in a data file are "
                "not run: decode to files first, or name the file itself (sph, flac and others are read as they are)"
            )
        if name:
            yield without_white_space(name), Path(source)


def _rows(path: Path, fields: int) -> Iterator[Line]:
    """The lines of an optional file, each with so many fields."""
    if not path.exists():
        return
    for line in lines(read_text(path), str(path)):
        if len(line.fields) != fields:
            raise line.error(f"a line of {path.name} has {fields} fields, this one has {len(line.fields)}")
        yield line


def _turns(folder: Path, recordings: dict[str, Path]) -> dict[str, tuple[Turn, ...]] | None:
    if (folder / "rttm").exists():
        known = rttm.read(folder / "rttm")
        without, others = [name for name in recordings if name not in known], sorted(known.keys() - recordings.keys())
        if without and others:  # others alone may be those of a larger corpus
            raise InputError(
                f"{folder / 'rttm'} says nothing about {without[0]!r} of {folder / 'wav.scp'}, but speaks of "
                f"{others[0]!r}: give each recording the same name in both"
            )
        return known
    if not (folder / "segments").exists():
        return None
    speaker = {line.fields[0]: line.fields[1] for line in _rows(folder / "utt2spk", 2)}
    found: dict[str, list[Turn]] = {}
    for line in _rows(folder / "segments", 4):
        utterance, recording = line.fields[:2]
        if utterance not in speaker:
            raise line.error(f"{folder / 'utt2spk'} does not say who speaks in {utterance!r}")
        if recording not in recordings:
            raise line.error(f"{folder / 'wav.scp'} has no recording {recording!r}")
        start, end = line.seconds(2, "start"), line.seconds(3, "end")
        if start >= end:
            raise line.error(f"{utterance!r} ends at {end} s, not after its start at {start} s")
        found.setdefault(recording, []).append(Turn(start, end, speaker[utterance]))
    return {name: tuple(sorted(turns)) for name, turns in found.items()}

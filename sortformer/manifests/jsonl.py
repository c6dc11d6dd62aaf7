"""Manifest files: one JSON object per line, with the fields of NeMo's diarization manifests.

``audio_filepath``, ``offset``, ``duration``, ``label``, ``text``, ``num_speakers``, ``rttm_filepath``,
``uem_filepath``, ``ctm_filepath`` (NeMo, "Speaker diarization: dataset preparation"), and ``uniq_id``: the id in RTTM,
by default the name of the file, as in NeMo. Several windows of one file without an id are named as in NeMo, by their
times in milliseconds: ``call_0_30000``. Relative paths are relative to the manifest.
"""

import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sortformer.annotation import Diarization, last_end
from sortformer.errors import InputError
from sortformer.formats import rttm
from sortformer.formats.names import check_path, in_unicode, without_white_space
from sortformer.formats.source import read_text
from sortformer.formats.write import write_text
from sortformer.json_values import json_lines, number_of, path_of, text_of, whole_number_of
from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.references import with_speakers

__all__ = ["is_manifest", "read", "read_lines", "read_some", "write"]

_SUFFIXES = frozenset({".jsonl", ".json"})


def is_manifest(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the extension of a manifest: ``.jsonl``, or ``.json``, which is common in NeMo."""
    return Path(path).suffix.lower() in _SUFFIXES


def read(path: str | os.PathLike[str]) -> list[Entry]:
    """Read a manifest.

    Raises:
        InputError: when the file is missing, not a manifest or empty, or two entries have the same id.
    """
    entries = read_some(path)
    taken: dict[str, Entry] = {}
    for entry in entries:
        if entry.id in taken:
            raise InputError(
                f"the manifest {path} has two recordings called {entry.id!r}: {taken[entry.id].audio} and "
                f"{entry.audio}; give each its own 'uniq_id'"
            )
        taken[entry.id] = entry
    return entries


def read_some(path: str | os.PathLike[str]) -> list[Entry]:
    """Return the entries of a manifest as :func:`read_lines` does.

    Raises:
        InputError: also when there are none.
    """
    entries = read_lines(path)
    if not entries:
        raise InputError(f"the manifest {path} has no recordings")
    return entries


def read_lines(path: str | os.PathLike[str]) -> list[Entry]:
    """Return the entries of a manifest, even if several have the same id; relative paths start at its folder.

    Raises:
        InputError: when the file is missing or a folder, or, with the line number, on a line that is not an entry.
    """
    source = Path(path)
    if source.is_dir():
        raise InputError(f"{path} is a folder, not a manifest: `sortformer manifest folder` makes one from it")

    def read(fields: dict[str, Any]) -> tuple[Entry, bool]:
        return _entry(fields, source.parent), bool(fields.get("uniq_id"))

    found = json_lines(read_text(source), source, "a manifest, with an object on each line", read)
    unnamed = {(entry.audio, entry.offset, entry.duration) for entry, named in found if not named}
    windows = Counter(audio for audio, _, _ in unnamed)  # a line that is there twice is one window
    return [entry if named or windows[entry.audio] == 1 else _named_by_times(entry) for entry, named in found]


def _entry(fields: dict[str, Any], base: Path) -> Entry:
    audio = _path(fields, "audio_filepath", base)
    if audio is None:
        raise InputError("'audio_filepath' is missing (`sortformer manifest lhotse` converts lhotse's manifests)")
    speakers = fields.get("num_speakers")
    return Entry(
        id=without_white_space(text_of(fields.get("uniq_id") or in_unicode(audio.stem), "'uniq_id'")),
        audio=audio,
        offset=_seconds(fields, "offset") or 0.0,
        duration=_seconds(fields, "duration"),
        rttm=_path(fields, "rttm_filepath", base),
        uem=_path(fields, "uem_filepath", base),
        num_speakers=None if speakers is None else whole_number_of(speakers, "'num_speakers'"),
    )


def _named_by_times(entry: Entry) -> Entry:
    times = [entry.offset, *([] if entry.duration is None else [entry.offset + entry.duration])]
    return replace(entry, id="_".join([entry.id, *(str(round(1000 * time)) for time in times)]))


def _path(fields: dict[str, Any], key: str, base: Path) -> Path | None:
    value = fields.get(key)
    return None if value in (None, "") else base / path_of(value, f"'{key}'")


def _seconds(fields: dict[str, Any], key: str) -> float | None:
    value = fields.get(key)
    return None if value is None else number_of(value, f"'{key}'")


def write(path: str | os.PathLike[str], drafts: Iterable[Draft | Entry], *, overwrite: bool = False) -> list[Entry]:
    """Write a manifest, sorted by id, and beside it ``rttm/ID.rttm`` for each draft with turns.

    Drafts get the number of speakers in their references, as NeMo's script writes it; entries are written as they are.
    Paths within the manifest's folder are relative, all others absolute.

    Raises:
        InputError: when a file exists and ``overwrite`` is not set, there is no recording, two have the same id, a
            draft's RTTM is not usable, or a path cannot be written as a line of UTF-8; then nothing is written.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; allow overwriting, or choose another path")
    found = sorted(
        (with_speakers(each) if isinstance(each, Draft) else Draft(each) for each in drafts),
        key=lambda each: each.entry.id,
    )
    if not found:
        raise InputError(f"there are no recordings to write to {path}")
    for one, two in itertools.pairwise(found):
        if one.entry.id == two.entry.id:
            raise InputError(
                f"{one.entry.audio} and {two.entry.audio} are both called {one.entry.id!r}; rename one or, of several "
                "channels, give the folder of one"
            )
    for each in found:
        _check(each, path.parent / "rttm", overwrite)
    entries = [_with_rttm(each, path.parent / "rttm", overwrite) for each in found]
    write_text(path, "".join(_line(entry, path.parent) for entry in entries), overwrite=overwrite)
    return entries


def _check(draft: Draft, folder: Path, overwrite: bool) -> None:
    """Check that a draft can be written, before anything is."""
    for path in filter(None, (draft.entry.audio, draft.entry.rttm, draft.entry.uem)):
        check_path(path)
    if draft.turns is None:
        return
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"{folder} is a file, but the references need a folder of that name: write the manifest elsewhere"
        )
    if not overwrite and (target := _target(draft, folder)).exists():
        raise InputError(f"{target} exists already; allow overwriting, or choose another path")


def _target(draft: Draft, folder: Path) -> Path:
    return folder / f"{draft.entry.id}.rttm"


def _with_rttm(draft: Draft, folder: Path, overwrite: bool) -> Entry:
    if draft.turns is None:
        return draft.entry
    target = _target(draft, folder)
    rttm.write(target, Diarization(draft.turns, last_end(draft.turns), draft.entry.id), overwrite=overwrite)
    return replace(draft.entry, rttm=target)


def _line(entry: Entry, base: Path) -> str:
    fields = {
        "audio_filepath": _written(entry.audio, base),
        "offset": entry.offset,
        "duration": entry.duration,
        "label": "infer",
        "text": "-",
        "num_speakers": entry.num_speakers,
        "rttm_filepath": _written(entry.rttm, base),
        "uem_filepath": _written(entry.uem, base),
        "ctm_filepath": None,
        "uniq_id": entry.id,
    }
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _written(path: Path | None, base: Path) -> str | None:
    if path is None:
        return None
    whole, home = (Path(os.path.realpath(each)) for each in (path, base))
    return whole.relative_to(home).as_posix() if whole.is_relative_to(home) else str(whole)

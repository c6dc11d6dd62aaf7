"""A manifest of lhotse's JSON lines: recordings with supervisions, or cuts."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats.names import without_white_space
from sortformer.formats.source import decoded, read_bytes
from sortformer.json_values import json_lines, number_of, path_of, text_of, whole_number_of
from sortformer.manifests.entry import Draft, Entry

__all__ = ["from_lhotse"]

Value = TypeVar("Value")


def from_lhotse(recordings: str | Path, supervisions: str | Path | None = None) -> list[Draft]:
    """Return the recordings of a ``recordings.jsonl[.gz]`` with their supervisions, or those of a ``cuts.jsonl[.gz]``.

    A cut becomes a window of its recording. Fields are those of lhotse 1.33 (Recording, SupervisionSegment, MonoCut).
    Relative paths are relative to the working directory, as in lhotse.

    Raises:
        InputError: when a file is missing or broken, audio is not one local file, or a supervision names no speaker
            or ends before it starts.
    """
    spoken: dict[str, list[Turn]] | None = None
    if supervisions is not None:
        spoken = {}
        for name, turns in _rows(supervisions, lambda row: (_text(row, "recording_id"), _turn(row, 0.0))):
            spoken.setdefault(name, []).extend(turns)
    drafts = _rows(recordings, lambda row: _draft(row, spoken))
    if spoken:
        raise InputError(f"{supervisions} refers to the recording {min(spoken)!r}, which is not in {recordings}")
    return drafts


def _draft(row: dict[str, Any], spoken: dict[str, list[Turn]] | None) -> Draft:
    """Return the draft of a cut, or of a recording with its turns, which are removed from ``spoken``."""
    if "tracks" in row:
        raise InputError("a MixedCut has no file of its own; save it first (CutSet.save_audios)")
    if "recording" in row:
        return _cut(row)
    name = _text(row, "id")
    turns = None if spoken is None else tuple(sorted(spoken.pop(name, ())))
    return Draft(_entry(row, name, 0.0, _number(row, "duration")), turns)


def _cut(row: dict[str, Any]) -> Draft:
    start, duration = _number(row, "start"), _number(row, "duration")
    turns = [turn for each in _mappings(row, "supervisions") for turn in _turn(each, start)]
    recording = row["recording"]
    if not isinstance(recording, dict):
        raise InputError(f"'recording' must be a mapping, got {recording!r}")
    name = _text(row, "id")
    there = {channel for source in _mappings(recording, "sources") for channel in _channels(source.get("channels"))}
    taken = _channels(row.get("channel"))
    if there and (absent := taken - there):
        raise InputError(
            f"the cut {name!r} uses channel {min(absent)}, which its file does not have: correct it (lhotse counts "
            "channels from 0, RTTM from 1)"
        )
    if taken and there - taken:
        raise InputError(
            f"the cut {name!r} uses {len(taken)} of the {len(there)} channels of its file; save it first "
            "(CutSet.save_audios)"
        )
    return Draft(_entry(recording, name, start, duration), tuple(sorted(turns)))


def _channels(value: Any) -> set[int]:
    """Return the channels in a field: one, several, or none."""
    named = value if isinstance(value, list) else [] if value is None else [value]
    return {whole_number_of(each, "a channel") for each in named}


def _entry(recording: dict[str, Any], name: str, offset: float, duration: float) -> Entry:
    if changed := [each for each in _mappings(recording, "transforms") if each.get("name") != "Resample"]:
        raise InputError(
            f"the audio of {name!r} is a modified version of its file ({changed[0].get('name')}); save it first "
            "(CutSet.save_audios)"
        )
    sources = _mappings(recording, "sources") or [{}]
    if len(sources) > 1 or sources[0].get("type") != "file":
        kinds = " and ".join(str(source.get("type")) for source in sources)
        raise InputError(f"the audio of {name!r} must be one local file, got {kinds}; save it first")
    return Entry(without_white_space(name), path_of(sources[0].get("source") or None, "'source'"), offset, duration)


def _turn(row: dict[str, Any], shift: float) -> list[Turn]:
    """Return the turn of a supervision, empty if it has no length; in a cut it may start before the cut."""
    start, duration = shift + _number(row, "start"), _number(row, "duration")
    if duration < 0:
        raise InputError(f"the supervision {row.get('id')!r} has a duration below 0, {duration:g} s: correct it")
    end = round(start + duration, 6)
    start = max(0.0, round(start, 6))
    speaker = without_white_space(_text(row, "speaker"))
    return [Turn(start, end, speaker)] if start < end else []


def _mappings(row: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a field that is a list of mappings; empty if it is missing."""
    found = row.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"{key!r} must be a list of mappings, got {found!r}")
    return found


def _text(row: dict[str, Any], key: str) -> str:
    return text_of(row.get(key) or None, repr(key))


def _number(row: dict[str, Any], key: str) -> float:
    return number_of(row.get(key), repr(key))


def _rows(path: str | Path, read: Callable[[dict[str, Any]], Value]) -> list[Value]:
    """Return the result of ``read`` for each line."""
    content = read_bytes(path)
    if Path(path).suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{path} cannot be unpacked ({error}); copy it again") from error
    return json_lines(decoded(content, str(path)), path, "from lhotse", read)

"""A manifest of lhotse's JSON lines: recordings with supervisions, or cuts."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats.names import without_white_space
from sortformer.formats.source import read_text
from sortformer.manifests.entry import Draft, Entry

__all__ = ["from_lhotse"]


def from_lhotse(recordings: str | Path, supervisions: str | Path | None = None) -> list[Draft]:
    """Return the recordings of a ``recordings.jsonl[.gz]`` with their supervisions, or those of a ``cuts.jsonl[.gz]``.

    A cut becomes a window of its recording. Fields as in lhotse 1.33 (Recording, SupervisionSegment, MonoCut). Relative
    paths are as lhotse takes them, from where the command is run.

    Raises:
        InputError: when a file is missing or broken, audio is not one local file, or a supervision names no speaker.
    """
    recordings = Path(recordings)
    spoken: dict[str, list[Turn]] | None = None
    if supervisions is not None:
        spoken = {}
        for where, row in _rows(Path(supervisions)):
            spoken.setdefault(_text(where, row, "recording_id"), []).extend(_turn(where, row, 0.0))
    drafts = []
    for where, row in _rows(recordings):
        if "tracks" in row:
            raise InputError(f"{where}: a MixedCut has no file of its own; save it first (CutSet.save_audios)")
        if "recording" in row:
            drafts.append(_cut(where, row))
        else:
            turns = None if spoken is None else tuple(sorted(spoken.pop(_text(where, row, "id"), ())))
            drafts.append(
                Draft(_entry(where, row, _text(where, row, "id"), 0.0, _number(where, row, "duration")), turns)
            )
    if spoken:
        raise InputError(f"{supervisions} speaks of the recording {min(spoken)!r}, which is not in {recordings}")
    return drafts


def _cut(where: str, row: dict[str, Any]) -> Draft:
    start, duration = _number(where, row, "start"), _number(where, row, "duration")
    turns = [turn for each in _mappings(where, row, "supervisions") for turn in _turn(where, each, start)]
    recording = row["recording"]
    if not isinstance(recording, dict):
        raise InputError(f"{where}: 'recording' must be a mapping, got {recording!r}")
    entry = _entry(where, recording, _text(where, row, "id"), start, duration)
    return Draft(entry, tuple(sorted(turns)))


def _entry(where: str, recording: dict[str, Any], name: str, offset: float, duration: float) -> Entry:
    sources = _mappings(where, recording, "sources") or [{}]
    if len(sources) > 1 or sources[0].get("type") != "file":
        kinds = " and ".join(str(source.get("type")) for source in sources)
        raise InputError(f"{where}: the audio of {name!r} must be one local file, got {kinds}; save it first")
    return Entry(without_white_space(name), Path(_text(where, sources[0], "source")), offset, duration)


def _turn(where: str, row: dict[str, Any], shift: float) -> list[Turn]:
    """The turn of a supervision, none where it has no length; what a cut holds of it may start before the cut."""
    start = shift + _number(where, row, "start")
    end = round(start + _number(where, row, "duration"), 6)
    start = max(0.0, round(start, 6))
    speaker = without_white_space(_text(where, row, "speaker"))
    return [Turn(start, end, speaker)] if start < end else []


def _mappings(where: str, row: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of mappings, empty where there is none."""
    found = row.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"{where}: {key!r} must be a list of mappings, got {found!r}")
    return found


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line as where it is and what it holds."""
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}, line {number}: not JSON ({error.msg}); is this from lhotse?") from error
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: lhotse has one JSON object a line, got {line[:40]!r}")
        yield f"{path}, line {number}", row


def _lines(path: Path) -> list[str]:
    if path.suffix != ".gz":
        return read_text(path).split("\n")
    try:
        return gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist") from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be unpacked ({error}); copy it again") from error


def _text(where: str, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}: {key!r} must be text, got {value!r}")
    return value


def _number(where: str, row: dict[str, Any], key: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where}: {key!r} must be a number of seconds, got {value!r}")
    return float(value)

"""JSON for programs: turns with confidence, the time axis of their frames, and the model and settings used.

Schema 1::

    {"schema_version": 1, "uri": str, "duration": s, "speakers": [str], "turns": [{"start": s, "end": s, "speaker": str,
     "confidence": probability or null}], "time_axis": {"start_s": s, "step_s": s, "num_frames": n} or null,
     "model": str or null, "version": str or null, "settings": {...}}

Results of a ``Diarizer``, a ``VoiceStore``, the command line and the server also have ``"warnings": [str]``, those
given while they were made: of a damaged file, for example. If words are given, there is also ``"words": [{"start": s,
"end": s, "text": str, "speaker": str or null}]``, which is ignored when a document is read. A recording lasts at least
until its last turn ends. Times are in seconds, those of turns and words in whole milliseconds. Keys may be added within
a schema version, so readers ignore unknown keys; a key whose meaning changes needs a new version.
"""

import json
import os
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn, last_end, speakers
from sortformer.errors import InputError
from sortformer.formats.milliseconds import rounded
from sortformer.formats.passages import Said, said
from sortformer.formats.source import read_text
from sortformer.formats.write import write_text
from sortformer.json_values import json_lines, json_object, number_of, text_of, whole_number_of

__all__ = ["SCHEMA_VERSION", "document", "format", "of_document", "parse", "parse_lines", "read", "turns", "write"]

SCHEMA_VERSION = 1


def format(
    recording: Diarization,
    words: Iterable[Said] | None = None,
    *,
    one_line: bool = False,
    ascii_only: bool = False,
    exact: bool = False,
) -> str:
    """Return one JSON document, which ends with a line break; names may contain any characters.

    Args:
        words: in the form of ``assign_speakers``.
        one_line: write one line, for JSON lines of several documents.
        ascii_only: escape all other characters.
        exact: write confidences with all their digits instead of four decimals, so that RTTM made from the document has
            the same three decimals as that of the recording.

    Raises:
        InputError: when the settings cannot be expressed in JSON, or an item is not such a word.
    """
    found = document(recording, words, exact=exact)
    try:
        return json.dumps(found, ensure_ascii=ascii_only, allow_nan=False, indent=None if one_line else 1) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"the settings of {recording.uri} cannot be written as JSON: {error}") from error


def document(recording: Diarization, words: Iterable[Said] | None = None, *, exact: bool = False) -> dict[str, Any]:
    """Return the document of a recording as plain values; arguments are those of :func:`format`.

    Raises:
        InputError: when an item is not a word in the form of ``assign_speakers``.
    """
    origin = recording.origin or Origin()
    axis = origin.time_axis
    found = {
        "schema_version": SCHEMA_VERSION,
        "uri": recording.uri,
        "duration": recording.duration,
        "speakers": speakers(_rounded(recording)),
        "turns": turns(recording, exact),
        "time_axis": axis and {"start_s": axis.start_s, "step_s": axis.step_s, "num_frames": axis.num_frames},
        "model": origin.model,
        "version": origin.version,
        "settings": dict(origin.settings),
    }
    if origin.warnings is not None:
        found["warnings"] = list(origin.warnings)
    if words is not None:
        found["words"] = [
            {"start": round(start, 3), "end": round(end, 3), "text": text.strip(), "speaker": speaker}
            for start, end, text, speaker in map(said, words)
        ]
    return found


def turns(recording: Diarization, exact: bool = False) -> list[dict[str, Any]]:
    """Return the turns of a recording for its document, sorted, with times rounded as in RTTM."""
    return [
        {
            "start": turn.start,
            "end": turn.end,
            "speaker": turn.speaker,
            "confidence": turn.confidence if exact or turn.confidence is None else round(turn.confidence, 4),
        }
        for turn in _rounded(recording)
    ]


def _rounded(recording: Diarization) -> list[Turn]:
    """Return the turns with times in whole milliseconds, sorted."""
    return sorted(replace(turn, start=start / 1000, end=end / 1000) for start, end, turn in rounded(recording))


def parse(text: str, source: str = "JSON") -> Diarization:
    """Return the diarization in a document of :func:`format`.

    Raises:
        InputError: with the source, when it is not JSON, has another schema version, or a value is missing or wrong.
    """
    return of_document(json_object(text, source, "a diarization"), source)


def parse_lines(text: str, source: str = "JSON") -> list[Diarization]:
    """Return the diarizations in documents as JSON lines; errors as for :func:`parse`."""
    return json_lines(text, source, "a diarization", lambda found: of_document(found, "it"))


def of_document(found: Mapping[str, Any], source: str = "JSON") -> Diarization:
    """Return the diarization in a document as plain values; errors as for :func:`parse`."""
    if "schema_version" not in found:
        raise InputError(f"{source} is not a diarization: it has no schema_version")
    version = found["schema_version"]
    if version != SCHEMA_VERSION:
        raise InputError(f"{source} has schema version {version!r}, but this release reads version {SCHEMA_VERSION}")
    try:
        return _recording(found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{source} is not a diarization: {reason}") from error


def _recording(found: Mapping[str, Any]) -> Diarization:
    turns = tuple(
        Turn(
            number_of(turn["start"], "start"),
            number_of(turn["end"], "end"),
            text_of(turn["speaker"], "speaker"),
            None if turn["confidence"] is None else number_of(turn["confidence"], "confidence"),
        )
        for turn in found["turns"]
    )
    axis = found["time_axis"]
    time_axis = None
    if axis is not None:
        time_axis = TimeAxis(
            number_of(axis["start_s"], "start_s"),
            number_of(axis["step_s"], "step_s"),
            whole_number_of(axis["num_frames"], "num_frames"),
        )
    model, version = (None if found[key] is None else text_of(found[key], key) for key in ("model", "version"))
    given = found.get("warnings")
    if not isinstance(given, list | None):
        raise InputError(f"warnings must be a list, got {reprlib.repr(given)}")
    warnings = None if given is None else tuple(text_of(each, "a warning") for each in given)
    origin = Origin(model, version, dict(found["settings"]), time_axis, warnings)
    duration, uri = number_of(found["duration"], "duration"), text_of(found["uri"], "uri")
    recording = Diarization((), duration, uri, None if origin == Origin() else origin)
    # A turn that was added by hand after the end must not be lost: the recording is longer then.
    return replace(recording, turns=turns, duration=max(recording.duration, last_end(turns)))


def read(path: str | os.PathLike[str]) -> Diarization:
    """Read a JSON file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


def write(path: str | os.PathLike[str], recording: Diarization, *, overwrite: bool = False) -> None:
    """Write a JSON file atomically (see :func:`format`)."""
    write_text(path, format(recording), overwrite=overwrite)

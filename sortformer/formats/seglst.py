"""SegLST, segments of speech as JSON, for meeteval and the CHiME and NOTSOFAR challenges.

A list of objects::

    [{"session_id": str, "speaker": str, "start_time": s, "end_time": s, "words": str}]

as documented by meeteval ("SEGment-wise Long-form Speech Transcription annotation"); files end in ``.seglst.json``.
Times are in seconds, written as numbers in whole milliseconds; CHiME-7 has strings, and meeteval reads both. Without
words, ``words`` is the empty string, which suffices for scores that do not count words, such as DER. Other characters
than ASCII are escaped, because meeteval opens files in the machine's default encoding.
"""

import json
import os
import reprlib
from collections.abc import Iterable
from typing import Any

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats.names import without_white_space
from sortformer.formats.passages import Said
from sortformer.formats.segments import segments
from sortformer.formats.source import read_text
from sortformer.formats.write import write_text
from sortformer.grid import LONGEST_S
from sortformer.json_values import json_value, number_of, text_of

__all__ = ["format", "parse", "read", "write"]


def parse(text: str, source: str = "SegLST") -> dict[str, tuple[Turn, ...]]:
    """Return the turns of each recording, sorted, by its id in order of first mention; words are ignored.

    Segments without length are ignored. White space in an id becomes ``_``, as in RTTM.

    Raises:
        InputError: with the source, when it is not such a list, or a segment lacks a valid recording, speaker or times.
    """
    found = json_value(text, source, "SegLST")
    if not isinstance(found, list):
        raise InputError(f"{source}: SegLST must be a list, got {reprlib.repr(found)}")
    turns: dict[str, list[Turn]] = {}
    for number, segment in enumerate(found, start=1):
        try:
            uri, own = _turn(segment)
        except InputError as error:
            raise InputError(f"{source}, segment {number}: {error}") from error
        turns.setdefault(uri, []).extend(own)
    return {uri: tuple(sorted(own)) for uri, own in turns.items()}


def _turn(segment: Any) -> tuple[str, list[Turn]]:
    """Return the recording of a segment and its turn; no turn if it has no length."""
    if not isinstance(segment, dict):
        raise InputError(f"a SegLST segment must be an object, got {reprlib.repr(segment)}")
    if missing := [key for key in ("session_id", "speaker", "start_time", "end_time") if key not in segment]:
        raise InputError(f"a SegLST segment needs '{missing[0]}', got {reprlib.repr(segment)}")
    start, end = (_seconds(segment[key], key) for key in ("start_time", "end_time"))
    if not 0 <= start <= end <= LONGEST_S:
        raise InputError(f"0 <= start_time <= end_time <= {LONGEST_S:g} is required, got {start:g} and {end:g}")
    speaker = text_of(segment["speaker"], "speaker")
    uri = without_white_space(text_of(segment["session_id"], "session_id"))
    return uri, [Turn(start, end, speaker)] if start < end else []


def _seconds(value: Any, what: str) -> float:
    try:
        return number_of(float(value) if isinstance(value, str) else value, what)
    except ValueError as error:
        raise InputError(f"{what} must be seconds, got {reprlib.repr(value)}") from error


def read(path: str | os.PathLike[str]) -> dict[str, tuple[Turn, ...]]:
    """Read a SegLST file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


def format(recording: Diarization, words: Iterable[Said] | None = None) -> str:
    """Return SegLST of a recording: its :func:`~sortformer.formats.segments.segments`, turns or words.

    Raises:
        InputError: when an item is not a word in the form of ``assign_speakers``.
    """
    found = [
        {
            "session_id": recording.uri,
            "speaker": segment.speaker,
            "start_time": segment.start,
            "end_time": segment.end,
            "words": segment.words,
        }
        for segment in segments(recording, words)
    ]
    return json.dumps(found, indent=1) + "\n"


def write(
    path: str | os.PathLike[str],
    recording: Diarization,
    words: Iterable[Said] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a SegLST file atomically (see :func:`format`)."""
    write_text(path, format(recording, words), overwrite=overwrite)

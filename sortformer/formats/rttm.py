"""RTTM, the NIST format for who spoke when: one line per turn, ten fields per line.

The fields: type, file, channel, onset, duration, orthography, subtype, speaker, confidence, lookahead (NIST, "The 2009
Rich Transcription Meeting Recognition Evaluation Plan", appendix A). Times are written in whole milliseconds.
"""

import math
import os

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats.milliseconds import in_milliseconds
from sortformer.formats.names import renamed, without_white_space
from sortformer.formats.source import Line, lines, quoted, read_text
from sortformer.formats.write import write_text

__all__ = ["format", "parse", "read", "write"]

_WORD_TYPES = frozenset({"LEXEME", "NON-LEX", "NON-SPEECH", "FILLER", "EDIT", "IP", "SU", "CB", "A/P"})
_OTHER_TYPES = _WORD_TYPES | {"SEGMENT", "NOSCORE", "NO_RT_METADATA", "SPKR-INFO"}
_OTHERS = "other formats end in .TextGrid, .eaf, .stm, .json or .labels.txt"


def parse(text: str, source: str = "RTTM") -> dict[str, tuple[Turn, ...]]:
    """Return the turns of each recording, sorted, by its id in order of first mention.

    Lines have nine or ten fields. Turns without length, comments and lines of other NIST types are ignored. A text
    without lines means no speech: the result is empty.

    Raises:
        InputError: with source and line number, on anything else that is not RTTM.
    """
    found: dict[str, list[Turn]] = {}
    for line in lines(text, source):
        if line.fields[0] == "SPEAKER":
            turns = _turn(line)
            found.setdefault(line.fields[1], []).extend(turns)
        elif line.fields[0] not in _OTHER_TYPES:
            first, capitals = quoted(line.fields[0]), line.fields[0].upper()
            if capitals in {"SPEAKER", *_OTHER_TYPES}:
                raise line.error(f"RTTM has no line type {first}; did you mean {capitals}?")
            raise line.error(f"RTTM lines begin with SPEAKER, not {first}; {_OTHERS}")
    return {uri: tuple(sorted(turns)) for uri, turns in found.items()}


def _turn(line: Line) -> list[Turn]:
    """Return the turn of a SPEAKER line; empty if its duration is 0."""
    line.check_count("a SPEAKER line", 9, 10)
    start, duration = line.seconds(3, "onset"), line.seconds(4, "duration")
    confidence = None
    if line.fields[8] != "<NA>":
        try:
            confidence = float(line.fields[8])
        except ValueError:
            confidence = math.nan
        if not math.isfinite(confidence):
            raise line.error(f"the confidence must be a number or <NA>, got {quoted(line.fields[8])}")
    end = round(start + duration, 6)  # the sum of two decimals, without floating-point noise
    return [Turn(start, end, line.fields[7], confidence)] if start < end else []


def read(path: str | os.PathLike[str]) -> dict[str, tuple[Turn, ...]]:
    """Read an RTTM file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


def format(*recordings: Diarization) -> str:
    """Return RTTM, sorted by file, onset, end and speaker; empty if nobody speaks.

    White space in an id or a speaker's name becomes ``_``, because RTTM cannot express it. Times are rounded to
    milliseconds and clipped to the recording; then turns without length are dropped, and overlapping and touching turns
    of one speaker are joined.

    Raises:
        InputError: when two recordings then have the same id, or two speakers of a recording the same name.
    """
    by_uri = {without_white_space(recording.uri): recording for recording in recordings}
    if len(by_uri) < len(recordings):
        raise InputError("two of the recordings have the same id; RTTM cannot tell them apart")
    named = {uri: renamed(by_uri[uri], without_white_space, "RTTM") for uri in sorted(by_uri)}
    return "".join(_line(uri, *row) for uri, recording in named.items() for row in in_milliseconds(recording))


def _line(uri: str, start: int, end: int, speaker: str, confidence: float | None) -> str:
    sure = "<NA>" if confidence is None else f"{confidence:.3f}"
    return f"SPEAKER {uri} 1 {start / 1000:.3f} {(end - start) / 1000:.3f} <NA> <NA> {speaker} {sure} <NA>\n"


def write(path: str | os.PathLike[str], *recordings: Diarization, overwrite: bool = False) -> None:
    """Write an RTTM file atomically (see :func:`format`)."""
    write_text(path, format(*recordings), overwrite=overwrite)

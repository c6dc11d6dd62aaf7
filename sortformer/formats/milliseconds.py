"""Turns in whole milliseconds, for the formats that write them so."""

import math
from collections.abc import Iterator

from sortformer.annotation import Diarization, Turn, merged

__all__ = ["in_milliseconds", "last_millisecond", "rounded"]


def last_millisecond(recording: Diarization) -> int:
    """Return the last whole millisecond of a recording, the latest time that is written."""
    return math.floor(recording.duration * 1000 + 1e-6)


def in_milliseconds(recording: Diarization) -> list[tuple[int, int, str, float | None]]:
    """Return start, end (milliseconds), speaker and confidence of each turn, sorted.

    Times are first rounded (see :func:`rounded`), then overlapping and touching turns of one speaker are joined.
    """
    whole = (Turn(start, end, turn.speaker, turn.confidence) for start, end, turn in rounded(recording))
    return [(round(turn.start), round(turn.end), turn.speaker, turn.confidence) for turn in merged(whole)]


def rounded(recording: Diarization) -> Iterator[tuple[int, int, Turn]]:
    """Yield start and end (milliseconds) of each turn, rounded and clipped to the recording, and the turn itself.

    Turns without length are dropped.
    """
    last = last_millisecond(recording)
    for turn in recording:
        start, end = round(turn.start * 1000), min(round(turn.end * 1000), last)
        if start < end:
            yield start, end, turn

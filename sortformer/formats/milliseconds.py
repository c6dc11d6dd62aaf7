"""The turns of a recording as formats of whole milliseconds write them."""

import math

from sortformer.annotation import Diarization, Turn, merged

__all__ = ["in_milliseconds", "last_millisecond"]


def last_millisecond(recording: Diarization) -> int:
    """Return the last whole millisecond of a recording: no time is written after it."""
    return math.floor(recording.duration * 1000 + 1e-6)


def in_milliseconds(recording: Diarization) -> list[tuple[int, int, str, float | None]]:
    """Return start, end (milliseconds), speaker and confidence of each turn, sorted.

    Times are rounded and clipped to the recording; after that, overlapping and touching turns of one speaker are joined
    and turns of no length dropped.
    """
    last = last_millisecond(recording)
    whole = [
        Turn(start, end, turn.speaker, turn.confidence)
        for turn in recording
        if (start := round(turn.start * 1000)) < (end := min(round(turn.end * 1000), last))
    ]
    return [(round(turn.start), round(turn.end), turn.speaker, turn.confidence) for turn in merged(whole)]

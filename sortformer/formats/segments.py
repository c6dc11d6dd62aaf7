"""Segments of speech: what SegLST, STM and OpenAI's transcriptions have in common."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sortformer.annotation import Diarization
from sortformer.formats.milliseconds import in_milliseconds, last_millisecond
from sortformer.formats.passages import Said, passages, text

__all__ = ["Segment", "segments"]

_NOBODY = "unknown"  # meeteval wants a name


class Segment(NamedTuple):
    """What one speaker says without a pause; start and end in seconds, whole milliseconds."""

    start: float
    end: float
    speaker: str
    words: str


def segments(recording: Diarization, words: Iterable[Said] | None) -> Iterator[Segment]:
    """Yield the turns of a recording, without words, or its words as ``assign_speakers`` gives them, where given.

    Words are joined until the speaker changes or pauses for a second; of words that nobody said, where nobody speaks in
    the whole recording, the speaker is ``unknown``. Touching turns of one speaker are joined. No time is after the end
    of the recording, and words that begin there are left out.

    Raises:
        InputError: when an item is no such word.
    """
    if words is None:
        for start, end, speaker, _ in in_milliseconds(recording):
            yield Segment(start / 1000, end / 1000, speaker, "")
        return
    last = last_millisecond(recording)
    for passage in passages(words):
        start, end = round(1000 * passage[0][0]), min(round(1000 * max(word[1] for word in passage)), last)
        if start < last:
            yield Segment(start / 1000, end / 1000, passage[0][3] or _NOBODY, text(passage))

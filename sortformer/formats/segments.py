"""Segments of speech, as shared by SegLST, STM, EAF, OpenAI's transcripts and, for words, CSV."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sortformer.annotation import Diarization
from sortformer.formats.milliseconds import in_milliseconds, last_millisecond
from sortformer.formats.passages import Said, passages, text

__all__ = ["Segment", "segments"]

_NOBODY = "unknown"  # meeteval requires a name


class Segment(NamedTuple):
    """The speech of one speaker without a pause; start and end in seconds, whole milliseconds."""

    start: float
    end: float
    speaker: str
    words: str


def segments(recording: Diarization, words: Iterable[Said] | None) -> Iterator[Segment]:
    """Yield the words of a recording, in the form of ``assign_speakers``; without ``words``, its turns.

    Words are joined until the speaker changes or pauses for a second; words without a speaker, in a recording in which
    nobody speaks, get the speaker ``unknown``. Touching turns of one speaker are joined. Times are clipped to the
    recording; words that start at its end or later, where recognisers hear some, are moved to its last millisecond.

    Raises:
        InputError: when an item is not such a word.
    """
    if words is None:
        for start, end, speaker, _ in in_milliseconds(recording):
            yield Segment(start / 1000, end / 1000, speaker, "")
        return
    last = last_millisecond(recording)
    for passage in passages(words):
        start = max(0, min(round(1000 * passage[0][0]), last - 1))
        end = min(round(1000 * max(word[1] for word in passage)), last)
        yield Segment(start / 1000, end / 1000, passage[0][3] or _NOBODY, text(passage))

"""Who said which word: the words of a transcript, joined with the turns of a diarization."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from sortformer.annotation import Diarization
from sortformer.errors import InputError

__all__ = ["Word", "assign_speakers"]


class Word(NamedTuple):
    """A word with its times in seconds, and who said it; None where nobody speaks in the whole recording."""

    start: float
    end: float
    text: str
    speaker: str | None


def assign_speakers(
    words: Iterable[tuple[float, float, str] | Mapping[str, Any]], diarization: Diarization
) -> list[Word]:
    """Return each word with the speaker whose turns share most time with it; where none do, that of the nearest turn.

    As ``assign_word_speakers`` of WhisperX with ``fill_nearest``. Of equals, it is who arrives first.

    Args:
        words: (start, end, text) in seconds; or segments as WhisperX gives them, mappings with ``words``, each with
            ``word``, ``start`` and ``end``. A word without times, such as a number, has those of its segment.

    Raises:
        InputError: when an item is neither, or a word's times are no numbers, or run backwards.
    """
    turns = diarization.merge().turns
    order = {speaker: rank for rank, speaker in enumerate(diarization.speakers)}
    starts, ends = (np.array([getattr(turn, name) for turn in turns]) for name in ("start", "end"))
    ranks = np.array([order[turn.speaker] for turn in turns], dtype=np.int64)
    found = []
    for start, end, text in _timed(words):
        if not turns:
            found.append(Word(start, end, text, None))
            continue
        shared = np.minimum(ends, end) - np.maximum(starts, start)  # below 0: how far away the turn is
        together = np.bincount(ranks, np.maximum(shared, 0.0))
        if together.any():
            rank = int(together.argmax())
        else:
            rank = int(ranks[shared == shared.max()].min())
        found.append(Word(start, end, text, diarization.speakers[rank]))
    return found


def _timed(words: Iterable[tuple[float, float, str] | Mapping[str, Any]]) -> Iterator[tuple[float, float, str]]:
    for item in words:
        try:
            if isinstance(item, Mapping):
                given = [
                    (word.get("start", item["start"]), word.get("end", item["end"]), word["word"])
                    for word in item["words"]
                ]
            else:
                given = [item]
            timed = [(float(start), float(end), str(text)) for start, end, text in given]
        except (TypeError, ValueError, KeyError, AttributeError):
            raise InputError(
                f"a word is (start, end, text), or in the 'words' of a segment with start and end, got {item!r}"
            ) from None
        for start, end, text in timed:
            if not -np.inf < start <= end < np.inf:
                raise InputError(f"the word {text!r} needs start <= end in seconds, got {start} to {end}")
        yield from timed

"""The words of a transcript as any speech recogniser returns it, each with a start and an end."""

import os
import re
import reprlib
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from sortformer.errors import InputError
from sortformer.formats.names import in_unicode
from sortformer.formats.spacing import closes, combines, joined, unspaced, words_in
from sortformer.grid import LONGEST_S

__all__ = ["SLACK_S", "timed_words"]

SLACK_S = 1.0  # how far words may lie outside of the recording

_WORD = "a word must be (start, end, text), have start, end, and word or text, or be in the words of such a segment"
_TORN = re.compile("[\udc80-\udcff]+")
_SEGMENTS, _WORDS = ("segments", "chunks", "transcription"), ("words", "word_segments")

_WORD_S = 1.0  # longest duration of a word without an end time
_BACKWARDS = 0.1  # share of words that may end before they begin; with more, the times are invalid
_FEW = 3  # fewer may be music in brackets, for minutes
_SLOW_S = 60.0  # median duration of a word; if it is longer in whole numbers, they are not seconds

_Said = tuple[float | None, float | None, str]  # start, end and text; a time that is not known is None


def timed_words(transcript: Any, duration: float) -> tuple[list[tuple[float, float, str]], int]:
    """Return all words as (start, end, text), and how many of them ended before they began.

    Args:
        transcript: as the words of ``assign_speakers``, which says what is done without a time.
        duration: of the recording, in seconds; a last word without an end ends there at the latest.

    Raises:
        InputError: when this is no transcript, or its times are invalid or so long that they are not in seconds.
    """
    said = _said(transcript)
    timed, backwards = [], []
    for (*_, text), (start, end) in zip(said, _inferred(said, duration), strict=True):
        if not -LONGEST_S <= start <= end <= LONGEST_S:
            backwards.append(f"the word {text!r} needs start <= end in seconds, got {start} to {end}")
            if not (abs(start) <= LONGEST_S and abs(end) <= LONGEST_S):
                raise InputError(backwards[-1])
            end = start
        if end < -SLACK_S:
            raise InputError(f"the word {text!r} ends at {end:g} s, before the recording begins")
        timed.append((max(0.0, start), max(0.0, end), text))  # aligners may return times slightly below 0
    if len(backwards) > _BACKWARDS * len(timed):
        raise InputError(backwards[0])
    lengths_s = [(end - start) / max(1, words_in(text)) for start, end, text in timed if text.strip()]
    whole = all(start.is_integer() and end.is_integer() for start, end, _ in timed)
    if whole and len(lengths_s) >= _FEW and (half_s := np.median(lengths_s)) > _SLOW_S:
        raise InputError(
            f"half of the words last {half_s:.0f} s or more: give their times in seconds, not in milliseconds"
        )
    return timed, len(backwards)


def _said(transcript: Any) -> list[_Said]:
    """Return the words of a transcript with the times that it has."""
    said = list[_Said]()
    alone, first = set[int](), set[int]()  # indices of segments without words, and of the first words of others
    for item in _parts(transcript):
        try:
            words = list(_words(item))
            (first if len(words) > 1 or _value(item, "words") else alone).add(len(said))
            said += _as_in_text(words, _value(item, "text"))
        except (OverflowError, TypeError, ValueError):
            raise InputError(f"{_WORD}, got {reprlib.repr(item)}") from None
    # Words of WhisperX bring no spaces, but a segment that it could not align has one: with it, all would be joined.
    if len(alone) < len(said) and not any(text[:1].isspace() for at, (*_, text) in enumerate(said) if at not in alone):
        said = [(start, end, text.lstrip()) for start, end, text in said]
    elif sum(not _is_one(said[at][2]) for at in alone) > len(alone) / 10:  # segments, not a list of words
        first |= alone
    return _unbroken(said, first)


def _inferred(said: list[_Said], duration: float) -> list[tuple[float, float]]:
    """Return the start and end of each word: what the transcript does not have, from the neighbours."""
    times = [time for start, end, _ in said for time in (start, end)]
    known = [(index, time) for index, time in enumerate(times) if time is not None]
    if not known:
        if said:
            raise InputError(f"{_WORD}, but none here has a time, not even {said[0][2]!r}")
        return []
    last, final = known[-1]
    starts = list(accumulate(times, _known, initial=known[0][1]))[1::2]
    # The last word, if its end is not known, may last until the end of the recording.
    ends = list(accumulate(reversed(times), _known, initial=final if last % 2 else duration))[-2::-2]
    for (before, begun), (after, ended) in pairwise(known):
        first, past = (before + 1) // 2, (after + 1) // 2  # words between these two without times
        if past > first + 1 and begun < ended:
            edges = np.linspace(begun, ended, past - first + 1).tolist()
            starts[first:past], ends[first:past] = edges[:-1], edges[1:]
    for index, (start, end, text) in enumerate(said):
        # Segments may overlap: an inferred time must not make a word end before it begins.
        if start is None:
            starts[index] = min(starts[index], ends[index])
        elif end is None:
            ends[index] = max(start, min(ends[index], start + _WORD_S * words_in(text)))
    return list(zip(starts, ends, strict=True))


def _known(last: float, time: float | None) -> float:
    return last if time is None else time


def _parts(transcript: Any) -> list[Any]:
    """Return the segments or words of a transcript, which may itself be a list of them."""
    lists = {name: _listed(found) for name in (*_SEGMENTS, *_WORDS) if (found := _value(transcript, name)) is not None}
    if not lists and isinstance(transcript, Mapping):
        keys = ", ".join(str(key) for key, value in transcript.items() if value is not None) or "nothing"
        raise InputError(
            f"a transcript needs segments, chunks or words with times, but this one has {keys}: "
            'transcribe with timestamps, or make it a list of words, [{"word": "Hello", "start": 0.5, "end": 0.9}, ...]'
        )
    if not lists:
        return _listed(transcript)
    segments, words = (next((lists[name] for name in names if lists.get(name)), []) for names in (_SEGMENTS, _WORDS))
    if not words or any(_value(each, "words") for each in segments):
        return segments
    return _punctuated(words, _value(transcript, "text"))


def _punctuated(words: list[Any], text: Any) -> list[Any]:
    """Return words with the spaces and the punctuation that they have in their text: OpenAI's have neither."""
    places = _places([_value(word, "word", _value(word, "text")) for word in words], text)
    if not places:
        return words
    cuts = list[int]()  # before what stands in front of the words
    for (_, at), (begin, _) in pairwise(places):
        space = re.search(r"\s", text[at:begin])
        cuts.append(at + space.start() if space else begin)
    pieces = [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]
    times = map(_times, words)
    return [{"word": piece, "start": start, "end": end} for piece, (start, end) in zip(pieces, times, strict=True)]


def _places(words: list[Any], text: Any) -> list[tuple[int, int]]:
    """Return where words begin and end in a text; empty if they bring their spaces, or are not those of the text."""
    if not isinstance(text, str) or any(not isinstance(word, str) or word != word.strip() for word in words):
        return []
    places, at = list[tuple[int, int]](), 0
    for word in words:
        begin = text.find(word, at)
        if begin < 0 or any(map(str.isalnum, text[at:begin])):
            return []
        at = begin + len(word)
        places.append((begin, at))
    return [] if any(map(str.isalnum, text[at:])) else places


def _listed(parts: Any) -> list[Any]:
    if isinstance(parts, str | bytes | os.PathLike):
        raise InputError(
            f"a transcript must be a list of words or segments, or a mapping with one, got {reprlib.repr(parts)}: read "
            "a file with sortformer.formats.transcript.read"
        )
    try:
        found = iter(parts)
    except TypeError:
        raise InputError(
            f"a transcript must be a list of words or segments, or a mapping with one, got {parts!r}"
        ) from None
    return list(found)


def _words(item: Any) -> Iterator[_Said]:
    """Yield the words of an item; times to be inferred from their neighbours are None."""
    if isinstance(item, tuple | list) and len(item) == 3:
        start, end, text = item
        yield float(start), float(end), in_unicode(str(text))
        return
    words = list(_value(item, "words") or _of_tokens(_value(item, "tokens")) or [item])
    for number, word in enumerate(words, start=1):
        start, end = _times(word)
        text = _value(word, "word", _value(word, "text"))
        if number == 1 and start is None:
            start = _value(item, "start")
        if number == len(words) and end is None:
            end = _value(item, "end")
        if text is None or (number == 1 and start is None and end is not None):
            raise ValueError("a word needs its text, and an item that has an end its start")
        yield None if start is None else float(start), None if end is None else float(end), in_unicode(str(text))


def _as_in_text(said: list[_Said], text: Any) -> list[_Said]:
    """Join letters and digits to words as in the text of a segment; WhisperX parts them in Chinese and Japanese."""
    words, before = list[_Said](), 0
    for word, (begin, end) in zip(said, _places([piece for *_, piece in said], text), strict=False):
        if begin < end and 0 < before == begin and not (unspaced(text[begin - 1]) or unspaced(text[begin])):
            words.append(_one(words.pop(), word))
        else:
            words.append(word)
        before = end
    return words or said


def _unbroken(said: list[_Said], first: set[int]) -> list[_Said]:
    """Join the pieces of a word where words bring their spaces, as Whisper gives ``" twenty"`` and ``"-five"``.

    A segment, of which ``first`` are the first words, begins a word even if it brings no space, such as the dash of a
    dialogue; but whisper.cpp may cut a segment within a word. A combining mark, which Whisper parts from its letter in
    Thai, and closing punctuation, as of French, begin no word with or without spaces: nor a subtitle, nor a turn.
    """
    spaced = any(text[:1].isspace() for *_, text in said)
    words = list[_Said]()
    for index, (start, end, text) in enumerate(said):
        before = words[-1][2] if words else ""
        if before and text and (combines(text[0]) or (closes(text) and index not in first)):
            more = text if spaced else joined((before, text))[len(before) :]
            words[-1] = _one(words[-1], (start, end, more))
            continue
        if spaced and before and text and not (before[-1].isspace() or text[0].isspace()):
            if index in first and not (before[-1].isalpha() and text[0].islower()):
                text = joined((before, text))[len(before) :]
            elif _is_one(before) and _is_one(text) and not (unspaced(before[-1]) or unspaced(text[0])):
                words[-1] = _one(words[-1], (start, end, text))
                continue
        words.append((start, end, text))
    return words


def _is_one(text: str) -> bool:
    """Return whether a text is at most one word, perhaps with a dash beside it."""
    return sum(any(map(str.isalnum, part)) for part in text.split()) <= 1


def _one(before: _Said, after: _Said) -> _Said:
    """Return two pieces of a word as one, from the first time to the last that is known; punctuation has no sound."""
    (start, middle, text), (other, end, more) = before, after
    kept = end is None or (middle is not None and closes(more))
    return other if start is None else start, middle if kept else end, text + more


def _of_tokens(tokens: Any) -> list[dict[str, Any]]:
    """Join tokens of whisper.cpp to words; special tokens are in brackets."""
    words: list[dict[str, Any]] = []
    for token in () if tokens is None else tokens:  # Whisper's own are integers, perhaps in an array
        text, at = _value(token, "text"), _value(token, "offsets")
        if not isinstance(text, str) or at is None:
            return []
        if text.startswith("[_"):
            continue
        if not words or _begins_word(text, words[-1]["text"]):
            words.append({"text": "", "offsets": {"from": _value(at, "from", 0)}})
        if not (words[-1]["text"] and closes(text)):  # whisper.cpp takes a full stop to be as long as three letters
            words[-1]["offsets"]["to"] = _value(at, "to", 0)
        words[-1]["text"] += text
    for word in words:
        word["text"] = _TORN.sub(_mended, word["text"])
    return words


def _begins_word(token: str, before: str) -> bool:
    """Return whether a token begins a word: with a space, or next to a letter of a script without, such as Chinese."""
    return token.startswith(" ") or (token[:1].isalnum() and any(map(unspaced, before[-1:] + token[0])))


def _mended(halves: re.Match[str]) -> str:
    """The characters whose bytes, as surrogates, were in two tokens."""
    return halves[0].encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _times(word: Any) -> tuple[Any, Any]:
    if offsets := _value(word, "offsets"):
        return _value(offsets, "from", 0) / 1000, _value(offsets, "to", 0) / 1000
    return _value(word, "timestamp") or (_value(word, "start"), _value(word, "end"))


def _value(item: Any, name: str, default: Any = None) -> Any:
    """Return an item of a mapping or an attribute of an object; the default if it is missing or None."""
    found = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
    return default if found is None else found

"""Speaker attribution: the words of a transcript, joined with the turns of a diarization."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import json
from sortformer.formats.names import without_white_space
from sortformer.formats.spacing import words_in
from sortformer.intervals import Regions, union
from sortformer.timed_words import SLACK_S, timed_words
from sortformer.unnamed import channel_name, is_label_of_a_program
from sortformer.warned import warn

__all__ = ["Word", "assign_speakers", "check_words"]

_CROSSED_S = 1.0  # speech of a second speaker in a segment: longer than an inexact border or a "yes"

_CHANNELS = (*enumerate(map(str, range(1, 100))), *enumerate("ABCDEFGH"))
_SPEAKERS = {channel: channel_name(column) for column, channel in _CHANNELS}
_OF_CHANNEL = re.compile(r"channel_\d+")


class Word(NamedTuple):
    """A word with its times in seconds and its speaker; None if the whole recording has no turn."""

    start: float
    end: float
    text: str
    speaker: str | None


def assign_speakers(
    words: Iterable[tuple[float, float, str] | Mapping[str, Any] | Any] | Mapping[str, Any],
    diarization: Diarization,
    *,
    within: Iterable[tuple[float, float]] | None = None,
) -> list[Word]:
    """Return each word with the speaker whose turns overlap it most; without overlap, with that of the nearest turn.

    As ``assign_word_speakers`` of WhisperX with ``fill_nearest``. Ties go to the speaker who arrives first.

    Args:
        words: (start, end, text) in seconds; or mappings or objects with ``start``, ``end``, and ``word`` or ``text``,
            as returned by Whisper, faster-whisper and WhisperX. A segment with ``words`` is replaced by these; one
            without is a single long word, without the name of a speaker in front of its text, as in our subtitles.
            Words without times, such as numbers, share the time between their neighbours equally, or get the start or
            end of their only neighbour. A word whose end is None, as Whisper leaves that of the last, lasts a second
            for each word of its text, at most until the next word begins or the recording ends. Times before 0 are
            moved to 0.
            Words and turns must have the same clock: if the audio of a video starts late or (in MP4, MKV and WebM) has
            gaps, turns keep the time of the video, but some decoders do not; then convert it to WAV first, and use
            that for both.
            Of a whole transcript, a mapping or an object, the ``segments`` are used, or the ``chunks`` of transformers,
            each a ``text`` with its ``timestamp``, or the ``transcription`` of whisper.cpp, with ``offsets`` in
            milliseconds, and with its ``tokens``, if any, joined to words. If none of these has words, the transcript's
            own ``words`` (OpenAI) or ``word_segments`` (WhisperX) are used, if there are any.
            Words of several channels (``channel``, 1 or A for the first, as in a CTM) are those of ``channel_1`` and
            so on if these are the speakers; they are returned channel by channel. The words of our own JSON keep their
            speakers, such as that of their channel, unless the turns differ from those in it in who speaks then.
        within: regions (start, end) in seconds, such as those of a UEM: words whose middle is in none are left out.
            A middle at a border is in the region that ends there, so that of adjoining windows one has the word.

    Raises:
        InputError: when an argument or an item is none of these, a word's times are not numbers or lie before the
            recording, more than a tenth of the words end before they begin, or half last so long that times are not in
            seconds.

    Warns:
        SortformerWarning: when there are turns, but no words; when a word ends before it begins, so that its end is
            moved to its start; when words begin after the end of the recording, which suggests another recording or
            times not in seconds; when their channels are numbered otherwise; when ``within`` leaves no words; when
            several people speak for a second or more in segments without ``words``.
    """
    if not isinstance(diarization, Diarization):  # in WhisperX it comes first
        raise InputError(f"pass the words first, then their Diarization, got {type(diarization).__name__}")
    if channels := _by_channel(words, diarization):
        always = {name: replace(diarization, turns=(Turn(0.0, diarization.duration, name),)) for name in channels}
        return [word for name in channels for word in assign_speakers(channels[name], always[name], within=within)]
    said, backwards = timed_words(words, diarization.duration)
    names = set(map(without_white_space, diarization.speakers))
    said = [(start, end, _unnamed(text, names)) for start, end, text in said]
    before, owners = _result_with(words, len(said), diarization.speakers)
    if diarization.turns and not said:
        warn(f"no words were given for {diarization.uri}, which has speech", stacklevel=2)
    if backwards:
        warn(
            f"{backwards} of {len(said)} words for {diarization.uri} end before they begin: their ends are "
            "moved to their starts",
            stacklevel=2,
        )
    if within is not None:
        regions, all_said = union(within), said
        inside = [_middle_in(regions, word) for word in said]
        said, owners = list(compress(said, inside)), list(compress(owners, inside))
        if all_said and not said:
            warn(f"none of the {len(all_said)} words lies in the selected regions of {diarization.uri}", stacklevel=2)
    found, crossed = _attributed(said, diarization)
    if before is not None:  # in our own JSON a word has another speaker than by time only if that is known better
        gone = {*before.speakers} - {*diarization.speakers}
        found = [
            now._replace(speaker=owner) if then.speaker == now.speaker and owner and owner not in gone else now
            for then, now, owner in zip(_attributed(said, before)[0], found, owners, strict=True)
        ]
    late = sum(word.start > diarization.duration + SLACK_S for word in found)
    if late:
        warn(
            f"{late} of {len(found)} words begin after the end of {diarization.uri} ({diarization.duration:g} s): are "
            "they of this recording, with times in seconds?",
            stacklevel=2,
        )
    if crossed:
        warn(
            f"several people speak in segments without words, {crossed} of {len(found)}: each is assigned to one of "
            "them; transcribe with word timestamps",
            stacklevel=2,
        )
    return found


def _by_channel(words: Any, diarization: Diarization) -> dict[str, list[Any]]:
    """Return the words of each channel by the label of its speaker; empty if words or speakers have no channels."""
    found: dict[str, list[Any]] = {}
    if diarization.turns and all(map(_OF_CHANNEL.fullmatch, diarization.speakers)):
        for word in words if isinstance(words, list | tuple) else ():
            channel = word.get("channel") if isinstance(word, Mapping) else getattr(word, "channel", None)
            found.setdefault(_SPEAKERS.get(str(channel), str(channel)), []).append(word)
    if len(found) < 2 or "None" in found:
        return {}
    if others := [channel for channel in found if channel not in _SPEAKERS.values()]:
        warn(
            f"words for {diarization.uri} are of channel {others[0]!r}, which is not 1, 2 or A, B and so on: speakers "
            "are assigned by time, not by channel",
            stacklevel=3,
        )
        return {}
    return {name: found[name] for name in _SPEAKERS.values() if name in found}


def _result_with(words: Any, count: int, speakers: tuple[str, ...]) -> tuple[Diarization | None, list[str | None]]:
    """Return the result in our own JSON and the speakers of its words; nothing if it has not so many or is another.

    Their names are those of ``speakers``, even where these have ``_`` for white space, as in RTTM.
    """
    written = {without_white_space(name): name for name in speakers}

    def here(name: str) -> str:
        return name if name in speakers else written.get(without_white_space(name), name)

    listed = words.get("words") if isinstance(words, Mapping) and "schema_version" in words else None
    if isinstance(listed, list) and len(listed) == count and all(isinstance(word, dict) for word in listed):
        with suppress(InputError):  # another program's document may have such a key
            before, owners = json.of_document(words), [word.get("speaker") for word in listed]
            before = before.relabel({name: here(name) for name in before.speakers})
            return before, [here(owner) if isinstance(owner, str) else None for owner in owners]
    return None, []


def _unnamed(text: str, names: set[str]) -> str:
    """Return the text of a subtitle without the name in front of it, ours or WhisperX's: it will get another."""
    name, _, spoken = text.partition(": ")
    known = without_white_space(name.removeprefix("[").removesuffix("]"))
    named = spoken and not text[0].isspace() and (known in names or is_label_of_a_program(known))
    return spoken if named else text


def _middle_in(regions: Regions, word: tuple[float, float, str]) -> bool:
    """Return whether the middle of a word is in a region; rounded, so that noise does not move it over a border."""
    middle = round((word[0] + word[1]) / 2, 6)
    # Without its end a region would lose the words without duration at the end of a recording; with its start, two
    # adjoining windows would have the same word.
    return any(round(start, 6) < middle <= round(end, 6) or start == middle == 0 for start, end in regions)


def _attributed(said: list[tuple[float, float, str]], diarization: Diarization) -> tuple[list[Word], int]:
    """Return each word with its speaker, and in how many segments without words several people speak."""
    turns, speakers = diarization.merge().turns, diarization.speakers
    if not turns:
        return [Word(*word, None) for word in said], 0
    starts, ends = np.array([(turn.start, turn.end) for turn in turns]).T
    ranks = np.array([speakers.index(turn.speaker) for turn in turns])
    found, crossed = list[Word](), 0
    for start, end, text in said:
        # Negative values are distances. Rounded, so that floating-point noise does not break ties.
        shared = np.round(np.minimum(ends, end) - np.maximum(starts, start), 6)
        together = np.round(np.bincount(ranks, np.maximum(shared, 0.0)), 6)
        crossed += bool(words_in(text) > 1 and (together >= _CROSSED_S).sum() > 1)
        rank = together.argmax() if together.any() else ranks[shared == shared.max()].min()
        found.append(Word(start, end, text, speakers[int(rank)]))
    return found, crossed


def check_words(words: Iterable[Any] | Mapping[str, Any] | Any, source: str) -> None:
    """Check words before a recording is processed; errors as of ``assign_speakers``, with the ``source``."""
    try:
        timed_words(words, 0.0)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error

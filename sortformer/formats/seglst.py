"""SegLST, segments of speech as JSON: what meeteval, and the CHiME and NOTSOFAR challenges, read.

A list of objects::

    [{"session_id": str, "speaker": str, "start_time": s, "end_time": s, "words": str}]

as meeteval documents it ("SEGment-wise Long-form Speech Transcription annotation"); files end in ``.seglst.json``.
Times are numbers of seconds, here in whole milliseconds; CHiME-7 has strings, and meeteval reads both. Where only the
turns are known, ``words`` is the empty string, and scores that count no words, such as DER, can be told. All is ASCII,
and what is not is escaped, because meeteval opens files in the encoding of the machine.
"""

import json
import os
from collections.abc import Iterable, Iterator

from sortformer.annotation import Diarization
from sortformer.formats.milliseconds import in_milliseconds, last_millisecond
from sortformer.formats.passages import Said, passages, text
from sortformer.formats.write import write_text

__all__ = ["format", "write"]

_NOBODY = "unknown"  # meeteval wants a name


def format(recording: Diarization, words: Iterable[Said] | None = None) -> str:
    """Return SegLST of a recording: its turns, or its words as ``assign_speakers`` gives them, where they are given.

    Words are joined until the speaker changes or pauses for a second; of words that nobody said, where nobody speaks in
    the whole recording, the speaker is ``unknown``. Touching turns of one speaker are joined. No time is after the end
    of the recording, and words that begin there are left out.

    Raises:
        InputError: when an item is no such word.
    """
    spoken = (
        ((start, end, speaker, "") for start, end, speaker, _ in in_milliseconds(recording))
        if words is None
        else _said(words, last_millisecond(recording))
    )
    segments = [
        {
            "session_id": recording.uri,
            "speaker": speaker,
            "start_time": start / 1000,
            "end_time": end / 1000,
            "words": what,
        }
        for start, end, speaker, what in spoken
    ]
    return json.dumps(segments, indent=1) + "\n"


def _said(words: Iterable[Said], last: int) -> Iterator[tuple[int, int, str, str]]:
    """Start, end (milliseconds), speaker and words of each passage."""
    for passage in passages(words):
        start, end = round(1000 * passage[0][0]), min(round(1000 * max(word[1] for word in passage)), last)
        if start < last:
            yield start, end, passage[0][3] or _NOBODY, text(passage)


def write(
    path: str | os.PathLike[str],
    recording: Diarization,
    words: Iterable[Said] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a SegLST file (see :func:`format`), whole or not at all."""
    write_text(path, format(recording, words), overwrite=overwrite)

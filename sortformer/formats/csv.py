"""CSV for spreadsheets and databases: one row per turn or, with words, per passage of one speaker.

The columns are always ``recording``, ``start`` and ``end`` (seconds, in whole milliseconds), ``speaker``,
``confidence`` (of turns) and ``words``; those without a value are empty. Quoting follows RFC 4180, in UTF-8. Texts with
a semicolon or a tab are quoted, too, because LibreOffice takes these for separators by default.
"""

import os
import re
from collections.abc import Iterable

from sortformer.annotation import Diarization
from sortformer.formats.milliseconds import in_milliseconds
from sortformer.formats.passages import Said
from sortformer.formats.segments import segments
from sortformer.formats.write import write_text

__all__ = ["HEADER", "format", "write"]

HEADER = "recording,start,end,speaker,confidence,words\n"

_QUOTED = re.compile(r'[",;\t\r\n]')


def format(recording: Diarization, words: Iterable[Said] | None = None) -> str:
    """Return the header and the rows of a recording, sorted by start: its turns or its words.

    Touching turns of one speaker are joined; words are joined as in SegLST
    (:func:`~sortformer.formats.segments.segments`).

    Raises:
        InputError: when an item is not a word in the form of ``assign_speakers``.
    """
    if words is None:
        rows = [
            (start / 1000, end / 1000, speaker, "" if confidence is None else f"{confidence:.4f}", "")
            for start, end, speaker, confidence in in_milliseconds(recording)
        ]
    else:
        rows = [(each.start, each.end, each.speaker, "", each.words) for each in segments(recording, words)]
    texts = ((recording.uri, f"{start:.3f}", f"{end:.3f}", *rest) for start, end, *rest in rows)
    return HEADER + "".join(",".join(map(_field, row)) + "\n" for row in texts)


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def write(
    path: str | os.PathLike[str],
    recording: Diarization,
    words: Iterable[Said] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a CSV file atomically (see :func:`format`)."""
    write_text(path, format(recording, words), overwrite=overwrite)

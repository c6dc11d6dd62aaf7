"""An HTML page to view, play and correct a result: one file that opens from disk, without a network.

The page holds the document of :mod:`sortformer.formats.json`, and saves the corrected result as RTTM or JSON; without
corrections, its RTTM equals that of :mod:`sortformer.formats.rttm`. With words, each turn shows what was said in it,
and corrected turns take their words with them. Its parts are in the folder ``page``.
"""

import json as standard
import os
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from sortformer.annotation import Diarization
from sortformer.formats import json
from sortformer.formats.passages import Said, passages, texts
from sortformer.formats.spacing import joined
from sortformer.formats.svg import COLOURS
from sortformer.formats.write import write_text

__all__ = ["format", "write"]

_PAGE = files("sortformer.formats") / "page"
_SCRIPTS = (
    "turns",
    "export",
    "state",
    "words",
    "sound",
    "comparison",
    "timeline",
    "list",
    "controls",
    "page",
)  # in order of dependence


def format(
    recording: Diarization, words: Iterable[Said] | None = None, *, comparison: Mapping[str, Any] | None = None
) -> str:
    """Return the page in ASCII, which is valid in any encoding; names may contain any characters.

    Args:
        recording: the result.
        words: in the form of ``assign_speakers``; blank ones are omitted.
        comparison: its reference and its errors, as made by :mod:`sortformer.evaluate.errors`.

    Raises:
        InputError: when the settings cannot be expressed in JSON, or an item is not such a word.
    """
    parts = {
        "style": _part("style.css"),
        "script": '"use strict";\n' + "".join(_part(f"{name}.js") for name in _SCRIPTS),
        "colours": standard.dumps(COLOURS),
        "result": _inert(json.format(recording, one_line=True, ascii_only=True, exact=True)),
        "words": _inert(standard.dumps(None if words is None else _spaced(words))),
        "comparison": _inert(standard.dumps(comparison)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _part("page.html"))


def _spaced(words: Iterable[Said]) -> list[tuple[int, int, str, str | None]]:
    """Return each word's start and end in milliseconds, its text with the space before it, and its speaker."""
    found, before = list[tuple[int, int, str, str | None]](), " "
    for passage in passages(words):
        first, *others = texts(passage)
        first = joined((before, first.lstrip()))[len(before) :]  # a pause is no space in Chinese
        for (start, end, _, speaker), text in zip(passage, (first, *others), strict=True):
            found.append((round(1000 * start), round(1000 * end), text, speaker))
        before = passage[-1][2]
    return found


def _inert(document: str) -> str:
    """Escape "<" in JSON, where it occurs only in strings, so that it cannot end the HTML element around it."""
    return document.replace("<", "\\u003c").strip()


def _part(name: str) -> str:
    return (_PAGE / name).read_text(encoding="ascii")


def write(
    path: str | os.PathLike[str],
    recording: Diarization,
    words: Iterable[Said] | None = None,
    *,
    comparison: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the page atomically (see :func:`format`)."""
    write_text(path, format(recording, words, comparison=comparison), overwrite=overwrite)

"""A page to look at a result, hear it and correct it: one file that opens from the disk, without a network.

The page holds the document of :mod:`sortformer.formats.json`, and saves what was corrected as RTTM or JSON; untouched,
the RTTM is that of :mod:`sortformer.formats.rttm`. Its parts are in the folder ``page``.
"""

import json as standard
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from sortformer.annotation import Diarization
from sortformer.formats import json
from sortformer.formats.svg import COLOURS
from sortformer.formats.write import write_text

__all__ = ["format", "write"]

_PAGE = files("sortformer.formats") / "page"
_SCRIPTS = (
    "turns",
    "export",
    "state",
    "sound",
    "comparison",
    "timeline",
    "list",
    "controls",
    "page",
)  # each uses those before it


def format(recording: Diarization, comparison: Mapping[str, Any] | None = None) -> str:
    """Return the page, in ASCII, so that any encoding holds it; names may hold anything.

    Args:
        recording: the result.
        comparison: what it was scored against and where it is wrong, as :mod:`sortformer.evaluate.errors` has it.

    Raises:
        InputError: when the settings hold what JSON cannot express.
    """
    parts = {
        "style": _part("style.css"),
        "script": '"use strict";\n' + "".join(_part(f"{name}.js") for name in _SCRIPTS),
        "colours": standard.dumps(COLOURS),
        "result": _inert(json.format(recording, one_line=True, ascii_only=True, exact=True)),
        "comparison": _inert(standard.dumps(comparison)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _part("page.html"))


def _inert(document: str) -> str:
    """JSON as the text of an element: "<" is only in strings there, and nothing else could end the element."""
    return document.replace("<", "\\u003c").strip()


def _part(name: str) -> str:
    return (_PAGE / name).read_text(encoding="ascii")


def write(
    path: str | os.PathLike[str],
    recording: Diarization,
    comparison: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the page (see :func:`format`), whole or not at all."""
    write_text(path, format(recording, comparison), overwrite=overwrite)

"""Inspection of the errors: HTML pages to view and play them, and label tracks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sortformer.annotation import Diarization, Turn, Turns, merged, speakers
from sortformer.errors import InputError
from sortformer.evaluate.report import Report, Row
from sortformer.formats import audacity, html
from sortformer.formats.names import check_names_files
from sortformer.formats.write import check_folder
from sortformer.metrics.protocol import Protocol

__all__ = ["check_free", "write_errors"]


def check_free(folder: Path, uris: Iterable[str], *, overwrite: bool = False) -> None:
    """Check, before recordings are scored, that :func:`write_errors` can write to the folder.

    Raises:
        InputError: when the folder cannot be written to, a file exists and ``overwrite`` is not set, or the id of a
            recording is not a valid file name.
    """
    check_folder(folder)
    for uri in uris:
        for path in _files(folder, uri):
            if os.path.lexists(path) and not overwrite:
                raise InputError(f"{path} exists already; use --overwrite, or another folder")


def write_errors(
    folder: Path,
    report: Report,
    references: Mapping[str, Turns],
    hypotheses: Mapping[str, Turns],
    *,
    overwrite: bool = False,
) -> None:
    """Write two files into a folder for each recording of a report: ``ID.html`` and ``ID.errors.txt``.

    The page is that of the hypothesis, with the reference below it and a lane for each kind of error. The labels are in
    Audacity's format: start, end and the error, such as ``confusion: Ada as speaker_1``.

    Raises:
        InputError: when a file exists and ``overwrite`` is not set, it cannot be written, or the id of a recording is
            not a valid file name.
    """
    for row in report.rows:
        reference, hypothesis = merged(references[row.uri]), tuple(hypotheses[row.uri])
        scored_s = max((end for _, end in row.region.parts), default=0.0)
        end_s = max([scored_s, *(turn.end for turn in (*reference, *hypothesis))])
        result = Diarization(hypothesis, end_s, row.uri)
        labels = tuple(Turn(each.start, each.end, str(each)) for each in row.comparison.errors)
        page, track = _files(folder, row.uri)
        shown = _shown(row, report.protocol, reference)
        html.write(page, result, comparison=shown, overwrite=overwrite)
        audacity.write(track, Diarization(labels, end_s, row.uri), overwrite=overwrite)


def _files(folder: Path, uri: str) -> tuple[Path, Path]:
    name = check_names_files(uri)
    return folder / f"{name}.html", folder / f"{name}.errors.txt"


def _shown(row: Row, protocol: Protocol, reference: tuple[Turn, ...]) -> dict[str, Any]:
    """Return the comparison with the reference for the page; times in milliseconds."""
    der, said = row.der, {there: name for name, there in row.comparison.pairs.items()}
    parts = f"miss {der.miss:.1f} s, false alarm {der.false_alarm:.1f} s, confusion {der.confusion:.1f} s"
    return {
        "score": f"DER {100 * der.rate:.1f} %: {parts}, of {der.total:.1f} s of speech; {protocol}",
        "reference": [
            {
                "speaker": name,
                "pair": said.get(name),
                "turns": [_ms(turn.start, turn.end) for turn in reference if turn.speaker == name],
            }
            for name in speakers(reference)
        ],
        "scored": [_ms(*part) for part in row.comparison.scored],
        "errors": [
            {"span": _ms(each.start, each.end), "kinds": each.kinds, "text": str(each)}
            for each in row.comparison.errors
        ],
    }


def _ms(start: float, end: float) -> tuple[int, int]:
    return round(1000 * start), round(1000 * end)

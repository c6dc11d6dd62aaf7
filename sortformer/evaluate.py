"""Score diarizations against references, recording by recording and in total, and show the result as a table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats import rttm
from sortformer.formats.names import without_white_space
from sortformer.formats.uem import Regions
from sortformer.formats.uem import read as read_uem
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.der import Turns, der, jer, speaker_counts
from sortformer.metrics.protocol import FULL, Protocol, protocol_named
from sortformer.metrics.region import Region, scored_region

__all__ = [
    "Parts",
    "Report",
    "Row",
    "as_json",
    "as_markdown",
    "as_text",
    "score",
    "score_recordings",
    "turns_by_recording",
    "uem_by_recording",
]

Value = TypeVar("Value")
Parts = Iterable[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """The errors of one recording."""

    uri: str
    der: DerCounts
    jer: JerCounts
    reference_speakers: int
    hypothesis_speakers: int
    region: Region


@dataclass(frozen=True, slots=True)
class Report:
    """The errors of several recordings under one protocol; rates in total are sums of errors over sums of speech."""

    protocol: Protocol
    rows: tuple[Row, ...]

    @property
    def der(self) -> DerCounts:
        """Diarization errors of all recordings."""
        return sum((row.der for row in self.rows), DerCounts.zero())

    @property
    def jer(self) -> JerCounts:
        """Jaccard errors of the reference speakers of all recordings."""
        return sum((row.jer for row in self.rows), JerCounts.zero())

    @property
    def speaker_count_error(self) -> float:
        """Mean absolute difference of the numbers of speakers, 0 without recordings."""
        return sum(abs(row.hypothesis_speakers - row.reference_speakers) for row in self.rows) / max(1, len(self.rows))

    @property
    def basis(self) -> str:
        """A sentence that says which parts were scored."""
        said = {
            "uem": "the parts in the UEM",
            "duration": "the whole recording",
            "extent": "from the first to the last turn of either side, for want of a UEM",
        }
        used = [said[basis] for basis in said if any(row.region.basis == basis for row in self.rows)]
        return f"Scored: {'; '.join(used) or 'nothing'}."


def score(
    reference: str | os.PathLike[str],
    hypothesis: str | os.PathLike[str],
    *,
    uem: str | os.PathLike[str] | None = None,
    protocol: str = "full",
) -> Report:
    """Score RTTM against RTTM; each a file (one or more recordings) or a folder of files. The UEM likewise.

    A file of a folder without a turn stands for a recording of its own name in which nobody speaks; a single file
    without a turn for silence in all recordings of the other side.

    Raises:
        InputError: when a path is missing or broken, or a recording is on one side only or missing in the UEM.
        ConfigError: when there is no such protocol.
    """
    chosen = protocol_named(protocol)
    references, hypotheses = turns_by_recording(Path(reference)), turns_by_recording(Path(hypothesis))
    regions = None if uem is None else uem_by_recording(Path(uem))
    names = references or hypotheses or {without_white_space(Path(reference).stem): ()}
    references = references or dict.fromkeys(names, ())
    hypotheses = hypotheses or dict.fromkeys(names, ())
    _check_same(references, hypotheses, str(reference), str(hypothesis))
    return score_recordings(references, hypotheses, uem=regions, protocol=chosen)


def score_recordings(
    references: Mapping[str, Turns],
    hypotheses: Mapping[str, Turns],
    *,
    uem: Mapping[str, Parts] | None = None,
    protocol: Protocol = FULL,
) -> Report:
    """Score diarizations or turns by the id of their recording; what is scored is as in ``metrics.region``.

    Raises:
        InputError: when a recording is on one side only or missing in the UEM.
    """
    _check_same(references, hypotheses, "the references", "the hypotheses")
    if uem is not None and (missing := sorted(set(references) - set(uem))):
        raise InputError(f"the UEM says nothing about {_listed(missing)}; add it, or score without it")
    rows = []
    for uri in sorted(references):
        reference, hypothesis = references[uri], hypotheses[uri]
        region = scored_region(reference, hypothesis, None if uem is None else uem[uri])
        counts = der(reference, hypothesis, region.parts, protocol)
        jaccard = jer(reference, hypothesis, region.parts)
        rows.append(Row(uri, counts, jaccard, *speaker_counts(reference, hypothesis, region.parts), region))
    return Report(protocol, tuple(rows))


def turns_by_recording(path: Path) -> dict[str, tuple[Turn, ...]]:
    """Return the turns that an RTTM file or folder gives each recording; none at all for a single file without a turn.

    Raises:
        InputError: when the path is missing or broken, or two files hold the same recording.
    """
    if not path.is_dir():
        return rttm.read(path)
    return _gather(path, ".rttm", lambda file: rttm.read(file) or {without_white_space(file.stem): ()})


def uem_by_recording(path: Path) -> dict[str, Regions]:
    """Return the regions that a UEM file or folder gives each recording; errors as for turns."""
    return _gather(path, ".uem", read_uem)


def _gather(path: Path, suffix: str, read: Callable[[Path], Mapping[str, Value]]) -> dict[str, Value]:
    """What a file, or all files of a folder with that suffix, say about each recording."""
    files = sorted(file for file in path.iterdir() if file.suffix.lower() == suffix) if path.is_dir() else [path]
    if not files:
        raise InputError(f"the folder {path} has no {suffix} files")
    found: dict[str, Value] = {}
    where: dict[str, Path] = {}
    for file in files:
        for uri, value in read(file).items():
            if uri in where:
                raise InputError(f"{where[uri]} and {file} both hold the recording {uri!r}")
            found[uri], where[uri] = value, file
    return found


def _check_same(references: Collection[str], hypotheses: Collection[str], reference: str, hypothesis: str) -> None:
    missing, extra = sorted(set(references) - set(hypotheses)), sorted(set(hypotheses) - set(references))
    if missing:
        raise InputError(f"{hypothesis} has no {_listed(missing)}, which {reference} has; an empty file means silence")
    if extra:
        raise InputError(f"{hypothesis} has {_listed(extra)}, but {reference} does not; remove it, or add a reference")


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


_HEAD = ("recording", "DER", "miss", "false alarm", "confusion", "JER", "speakers", "speech s")


def _cells(name: str, counts: DerCounts, jaccard: JerCounts, speakers: str) -> tuple[str, ...]:
    share = 100 / counts.total if counts.total else 0.0
    rates = (100 * counts.rate, share * counts.miss, share * counts.false_alarm, share * counts.confusion)
    return name, *(f"{rate:.2f}" for rate in (*rates, 100 * jaccard.rate)), speakers, f"{counts.total:.2f}"


def _table(report: Report) -> list[tuple[str, ...]]:
    """Rows of text: head, one a recording, total; rates in percent of reference speech."""
    body = [
        _cells(row.uri, row.der, row.jer, f"{row.hypothesis_speakers} of {row.reference_speakers}")
        for row in report.rows
    ]
    total = _cells("TOTAL", report.der, report.jer, f"off by {report.speaker_count_error:.2f}")
    return [_HEAD, *body, total]


def as_text(report: Report) -> str:
    """Return an aligned table for the terminal, with protocol and scored parts below; rates in percent."""
    table = _table(report)
    widths = [max(len(row[column]) for row in table) for column in range(len(_HEAD))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in table
    ]
    return "\n".join([*lines, f"Protocol: {report.protocol}. {report.basis}"]) + "\n"


def as_markdown(report: Report) -> str:
    """Return a Markdown table, with protocol and scored parts below; rates in percent."""
    table = [[cell.replace("|", "\\|") for cell in row] for row in _table(report)]
    head, *body = ["| " + " | ".join(row) + " |" for row in table]
    rule = "|---|" + "---:|" * (len(_HEAD) - 1)
    return "\n".join([head, rule, *body, "", f"Protocol: {report.protocol}. {report.basis}"]) + "\n"


def as_json(report: Report) -> str:
    """Return a JSON document: protocol, files and total; times in seconds, rates as fractions."""
    document = {
        "protocol": {
            "name": report.protocol.name,
            "collar_s": report.protocol.collar_s,
            "skip_overlap": report.protocol.skip_overlap,
        },
        "files": [
            {
                "uri": row.uri,
                **_measures(row.der, row.jer),
                "reference_speakers": row.reference_speakers,
                "hypothesis_speakers": row.hypothesis_speakers,
                "scored_region": {"basis": row.region.basis, "duration_s": round(row.region.duration, 6)},
            }
            for row in report.rows
        ],
        "total": {**_measures(report.der, report.jer), "speaker_count_error": report.speaker_count_error},
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _measures(counts: DerCounts, jaccard: JerCounts) -> dict[str, Any]:
    seconds = {
        "total_s": counts.total,
        "miss_s": counts.miss,
        "false_alarm_s": counts.false_alarm,
        "confusion_s": counts.confusion,
    }
    return {"der": counts.rate, **{key: round(value, 6) for key, value in seconds.items()}, "jer": jaccard.rate}

"""Reports as text for the terminal, Markdown, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from sortformer.errors import listed
from sortformer.evaluate.report import Report
from sortformer.metrics.counts import DerCounts, JerCounts

__all__ = ["as_csv", "as_json", "as_markdown", "as_text"]

Table = list[tuple[str, ...]]

_HEAD = ("recording", "DER", "miss", "false alarm", "confusion", "JER", "speakers", "speech s")
_BY_SPEAKERS = (
    "speakers",
    "recordings",
    "DER",
    "95 %",
    "miss",
    "false alarm",
    "confusion",
    "JER",
    "off by",
    "speech s",
)
_BY_OVERLAP = ("at once", "DER", "of all: miss", "false alarm", "confusion", "speech s")


def as_text(report: Report, breakdown: bool = False) -> str:
    """Return aligned tables for the terminal, with protocol and scored parts below; rates in percent.

    A line lists the recordings without reference speech, because their rates mean little. ``breakdown`` adds tables by
    number of speakers, and by number of speakers who speak at once.
    """
    tables = [_aligned(table) for table in _tables(report, breakdown)]
    return "\n".join([tables[0] + _notes(report, "\n"), *tables[1:]])


def as_markdown(report: Report, breakdown: bool = False) -> str:
    """Return Markdown tables, with protocol and scored parts below the first; content as for :func:`as_text`."""
    tables = [_piped(table) for table in _tables(report, breakdown)]
    return "\n".join([f"{tables[0]}\n{_notes(report, '  ' + chr(10))}", *tables[1:]])


def _notes(report: Report, line_break: str) -> str:
    lines = []
    if report.interval is not None:
        basis = f"bootstrap over {len(report.rows)} recordings"
        lines.append(f"DER {_percent(report.der.rate)} %; 95 % interval {_spread(report.interval)} % ({basis}).")
    if (baseline := report.baseline) is not None:
        spread = report.gain_interval(baseline)
        interval = "" if spread is None else f"; 95 % interval {_spread(spread)} (paired bootstrap)"
        gain = f"{_percent(report.gain(baseline))} points{interval}"
        lines.append(f"Gain over the baseline (DER {_percent(baseline.der.rate)} %): {gain}.")
    lines.append(f"Protocol: {report.protocol}. {report.basis}")
    if report.protocol.collar_s or report.protocol.skip_overlap:
        lines.append("JER has no collar and includes overlap under any protocol.")
    if without := [row.uri for row in report.rows if not row.der.total]:
        lines.append(
            f"No reference speech is scored in {listed(without)}: errors there are given in seconds, "
            "and the rates are 0 % without errors and 100 % with any."
        )
    return line_break.join(lines) + "\n"


def _tables(report: Report, breakdown: bool) -> list[Table]:
    return [_main(report), *([_by_speakers(report), _by_overlap(report)] if breakdown else [])]


def _main(report: Report) -> Table:
    """Return the header, one row per recording, and the total; rates in percent of reference speech."""
    body = [
        _cells(row.uri, row.der, row.jer, f"{row.hypothesis_speakers} of {row.reference_speakers}")
        for row in report.rows
    ]
    return [_HEAD, *body, _cells("TOTAL", report.der, report.jer, f"off by {report.speaker_count_error:.2f}")]


def _cells(name: str, counts: DerCounts, jaccard: JerCounts, speakers: str) -> tuple[str, ...]:
    return name, _percent(counts.rate), *_shares(counts), _percent(jaccard.rate), speakers, f"{counts.total:.2f}"


def _by_speakers(report: Report) -> Table:
    body = []
    for number, group in report.by_speakers.items():
        spread = "-" if group.interval is None else _spread(group.interval)
        name, rate, *rest = _cells(str(number), group.der, group.jer, f"{group.speaker_count_error:.2f}")
        body.append((name, str(len(group.rows)), rate, spread, *rest))
    return [_BY_SPEAKERS, *body]


def _by_overlap(report: Report) -> Table:
    """Return the DER of each class, and its parts as shares of all reference speech, which add up to the total."""
    body = [
        (
            str(number),
            _percent(counts.rate) if number else "-",
            *_shares(counts, report.der.total),
            f"{counts.total:.2f}",
        )
        for number, counts in report.by_overlap.items()
    ]
    return [_BY_OVERLAP, *body]


def _shares(counts: DerCounts, total: float | None = None) -> tuple[str, str, str]:
    """Return miss, false alarm and confusion in percent of reference speech; in seconds (``1.00 s``) without any."""
    whole = counts.total if total is None else total
    miss, false_alarm, confusion = (
        _percent(part / whole) if whole else f"{part:.2f} s"
        for part in (counts.miss, counts.false_alarm, counts.confusion)
    )
    return miss, false_alarm, confusion


def _percent(rate: float) -> str:
    return f"{100 * rate:.2f}"


def _spread(interval: tuple[float, float]) -> str:
    return " to ".join(map(_percent, interval))


def _aligned(table: Table) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        for row in table
    ]
    return "".join("  ".join(line) + "\n" for line in lines)


def _piped(table: Table) -> str:
    head, *body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
    rule = "|---|" + "---:|" * (len(table[0]) - 1)
    return "\n".join([head, rule, *body]) + "\n"


def as_json(report: Report) -> str:
    """Return a JSON document: protocol, files, total and breakdowns; times in seconds, rates as fractions."""
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
        "total": _whole(report),
        **({} if report.baseline is None else {"baseline": _compared(report, report.baseline)}),
        "by_speakers": {str(number): _whole(group) for number, group in report.by_speakers.items()},
        "by_overlap": {str(number): _seconds(counts) for number, counts in report.by_overlap.items()},
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _whole(report: Report) -> dict[str, Any]:
    return {
        "recordings": len(report.rows),
        **_measures(report.der, report.jer),
        "der_interval": report.interval,
        "speaker_count_error": report.speaker_count_error,
    }


def _compared(report: Report, baseline: Report) -> dict[str, Any]:
    return {**_whole(baseline), "gain": report.gain(baseline), "gain_interval": report.gain_interval(baseline)}


def _measures(counts: DerCounts, jaccard: JerCounts) -> dict[str, Any]:
    return {"der": counts.rate, **_seconds(counts), "jer": jaccard.rate}


def _seconds(counts: DerCounts) -> dict[str, float]:
    parts = {
        "total_s": counts.total,
        "miss_s": counts.miss,
        "false_alarm_s": counts.false_alarm,
        "confusion_s": counts.confusion,
    }
    return {key: round(value, 6) for key, value in parts.items()}


def as_csv(report: Report) -> str:
    """Return CSV: one line per recording, then the total and the breakdowns; ``group`` is the kind of a line.

    If there is a baseline, its total and the gain have lines, too. Times in seconds, rates as fractions; cells without
    meaning are empty. Each line has the protocol and, as ``basis``, the source of the scored parts: ``uem``,
    ``duration`` or ``extent``, or several joined by ``+``.
    """
    lines = [
        {"group": "recording", "name": row.uri, **_measures(row.der, row.jer)}
        | {"reference_speakers": row.reference_speakers, "hypothesis_speakers": row.hypothesis_speakers}
        | _conditions(Report(report.protocol, (row,)))
        for row in report.rows
    ]
    groups = {("total", "TOTAL"): report, **{("speakers", str(n)): part for n, part in report.by_speakers.items()}}
    if report.baseline is not None:
        groups["baseline", "TOTAL"] = report.baseline
    for (group, name), part in groups.items():
        low, high = part.interval or ("", "")
        measures = _measures(part.der, part.jer) | {"der_low": low, "der_high": high}
        lines.append({"group": group, "name": name, "recordings": len(part.rows), **measures, **_conditions(part)})
    if report.baseline is not None:
        low, high = report.gain_interval(report.baseline) or ("", "")
        gain = {"der": report.gain(report.baseline), "der_low": low, "der_high": high}
        lines.append({"group": "gain", "name": "TOTAL", **gain, **_conditions(report)})
    for number, counts in report.by_overlap.items():
        rate = {"der": counts.rate} if number else {}
        lines.append({"group": "overlap", "name": str(number), **rate, **_seconds(counts), **_conditions(report)})
    columns = list(dict.fromkeys(("group", "name", *(key for line in lines for key in line))))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _conditions(report: Report) -> dict[str, Any]:
    """Return the cells of the scoring conditions, without which the numbers mean nothing."""
    return {
        "protocol": report.protocol.name,
        "collar_s": report.protocol.collar_s,
        "skip_overlap": str(report.protocol.skip_overlap).lower(),
        "basis": "+".join(sorted({row.region.basis for row in report.rows})),
    }

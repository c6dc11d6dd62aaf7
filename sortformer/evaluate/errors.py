"""Where the errors are that were counted: pages to see and hear them in, and label tracks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sortformer.annotation import Diarization, Turn, merged, speakers
from sortformer.evaluate.report import Report, Row
from sortformer.formats import audacity, html
from sortformer.formats.names import check_names_files
from sortformer.metrics.compared import Stretch, errors
from sortformer.metrics.der import pairing
from sortformer.metrics.region import Turns

__all__ = ["write_errors"]


def write_errors(
    folder: Path,
    report: Report,
    references: Mapping[str, Turns],
    hypotheses: Mapping[str, Turns],
    *,
    overwrite: bool = False,
) -> None:
    """Write two files into a folder for each recording of a report: ``ID.html`` and ``ID.errors.txt``.

    The page is that of the hypothesis, with the reference and a lane for each kind of error below it. The labels are
    Audacity's: start, end and what is wrong, such as ``confusion: Ada as speaker_1``.

    Raises:
        InputError: when a file is there already and ``overwrite`` is not set, it cannot be written, or no file can be
            called as a recording is.
    """
    for row in report.rows:
        reference, hypothesis = merged(references[row.uri]), tuple(hypotheses[row.uri])
        found = errors(reference, hypothesis, row.region.parts, report.protocol)
        scored_s = max((end for _, end in row.region.parts), default=0.0)
        end_s = max([scored_s, *(turn.end for turn in (*reference, *hypothesis))])
        labels = tuple(Turn(stretch.start, stretch.end, str(stretch)) for stretch in found)
        pairs = {
            there: said for said, there in pairing(reference, hypothesis, row.region.parts, report.protocol).items()
        }
        compared = _comparison(row, report, reference, pairs, found)
        result = Diarization(hypothesis, end_s, row.uri)
        name = check_names_files(row.uri)
        html.write(folder / f"{name}.html", result, compared, overwrite=overwrite)
        audacity.write(folder / f"{name}.errors.txt", Diarization(labels, end_s, row.uri), overwrite=overwrite)


def _comparison(
    row: Row, report: Report, reference: tuple[Turn, ...], pairs: Mapping[str, str], found: tuple[Stretch, ...]
) -> dict[str, Any]:
    """What the page holds beside the result; times in milliseconds."""
    der = row.der
    parts = f"miss {der.miss:.1f} s, false alarm {der.false_alarm:.1f} s, confusion {der.confusion:.1f} s"
    return {
        "score": f"DER {100 * der.rate:.1f} %: {parts}, of {der.total:.1f} s of speech; {report.protocol}",
        "reference": [
            {
                "speaker": name,
                "pair": pairs.get(name),
                "turns": [(_ms(turn.start), _ms(turn.end)) for turn in reference if turn.speaker == name],
            }
            for name in speakers(reference)
        ],
        "errors": [
            {"start": _ms(each.start), "end": _ms(each.end), "kinds": each.kinds, "text": str(each)} for each in found
        ],
    }


def _ms(seconds: float) -> int:
    return round(1000 * seconds)

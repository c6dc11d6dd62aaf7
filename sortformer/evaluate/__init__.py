"""Scoring of diarizations against references, by recording and in total, and tables of the results."""

from sortformer.evaluate.report import Report, Row
from sortformer.evaluate.scoring import STDIN, score, score_recordings
from sortformer.evaluate.sides import Truth, truth_in
from sortformer.evaluate.tables import as_csv, as_json, as_markdown, as_text

__all__ = [
    "STDIN",
    "Report",
    "Row",
    "Truth",
    "as_csv",
    "as_json",
    "as_markdown",
    "as_text",
    "score",
    "score_recordings",
    "truth_in",
]

"""The result of scoring: the errors of each recording, and their sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sortformer.errors import InputError
from sortformer.metrics.bootstrap import ratio_interval
from sortformer.metrics.compared import Comparison
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.protocol import Protocol
from sortformer.metrics.region import Region

__all__ = ["Report", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """The errors of one recording, and where they are."""

    uri: str
    der: DerCounts
    jer: JerCounts
    reference_speakers: int
    hypothesis_speakers: int
    region: Region
    comparison: Comparison = field(default_factory=Comparison, repr=False, hash=False)

    @property
    def by_overlap(self) -> Mapping[int, DerCounts]:
        """The errors by the number of reference speakers who speak at once (0: nobody)."""
        return self.comparison.by_overlap


@dataclass(frozen=True, slots=True)
class Report:
    """The errors of several recordings under one protocol; total rates are sums of errors over sums of speech."""

    protocol: Protocol
    rows: tuple[Row, ...]
    baseline: Report | None = field(default=None, repr=False)
    """Another hypothesis for the same recordings, to compare with."""

    @property
    def der(self) -> DerCounts:
        """Diarization errors of all recordings."""
        return sum((row.der for row in self.rows), DerCounts())

    @property
    def jer(self) -> JerCounts:
        """Jaccard errors of the reference speakers of all recordings."""
        return sum((row.jer for row in self.rows), JerCounts())

    @property
    def speaker_count_error(self) -> float:
        """Mean absolute error of the number of speakers, 0 without recordings."""
        return sum(abs(row.hypothesis_speakers - row.reference_speakers) for row in self.rows) / max(1, len(self.rows))

    @property
    def by_overlap(self) -> dict[int, DerCounts]:
        """The errors by the number of reference speakers who speak at once (0: nobody); their sum is ``der``."""
        totals: dict[int, DerCounts] = {}
        for row in self.rows:
            for number, counts in row.by_overlap.items():
                totals[number] = totals.get(number, DerCounts()) + counts
        return dict(sorted(totals.items()))

    @property
    def by_speakers(self) -> dict[int, Report]:
        """The recordings grouped by their number of reference speakers, one report per group."""
        numbers = sorted({row.reference_speakers for row in self.rows})
        return {
            number: Report(self.protocol, tuple(row for row in self.rows if row.reference_speakers == number))
            for number in numbers
        }

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the DER by a bootstrap over recordings; None for fewer than two."""
        if len(self.rows) < 2:
            return None
        return ratio_interval([row.der.errors for row in self.rows], [row.der.total for row in self.rows])

    def gain(self, baseline: Report) -> float:
        """Return how much lower the DER is than that of another hypothesis for the same recordings, a fraction.

        Raises:
            InputError: when the recordings are others.
        """
        _check_paired(self, baseline)
        return baseline.der.rate - self.der.rate

    def gain_interval(self, baseline: Report) -> tuple[float, float] | None:
        """Return the 95 % interval of the gain by a paired bootstrap over recordings; None for fewer than two.

        Raises:
            InputError: when the recordings are others.
        """
        _check_paired(self, baseline)
        if len(self.rows) < 2:
            return None
        saved = [theirs.der.errors - own.der.errors for theirs, own in zip(baseline.rows, self.rows, strict=True)]
        return ratio_interval(saved, [row.der.total for row in self.rows])

    @property
    def basis(self) -> str:
        """A sentence that says which parts were scored."""
        said = {
            "uem": "the parts in the UEM, or in the windows of the manifest",
            "duration": "the whole recording",
            "extent": "from the first to the last turn of either side, without a UEM",
        }
        used = [said[basis] for basis in said if any(row.region.basis == basis for row in self.rows)]
        return f"Scored: {'; '.join(used) or 'nothing'}."


def _check_paired(report: Report, baseline: Report) -> None:
    if [row.uri for row in report.rows] != [row.uri for row in baseline.rows]:
        raise InputError("a gain needs two reports about the same recordings")

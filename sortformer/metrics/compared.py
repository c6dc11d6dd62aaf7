"""Comparison of a hypothesis with a reference: stretch by stretch, which speakers are missed, added or confused."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sortformer.annotation import Turns, merged, to_pyannote
from sortformer.intervals import Regions, moments
from sortformer.metrics.counts import DerCounts
from sortformer.metrics.protocol import FULL, Protocol, protocol_named
from sortformer.metrics.region import Parts, scored_region

if TYPE_CHECKING:
    from pyannote.core import Annotation, Timeline

__all__ = ["KINDS", "Comparison", "Stretch", "compared", "in_pyannote", "paired"]

KINDS = ("miss", "false alarm", "confusion")
"""The kinds of errors."""

_SHORTEST_S = 1e-6  # shorter stretches are floating-point noise


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time in which the active speakers do not change, neither in the reference nor in the hypothesis.

    ``speaking`` is the number of active reference speakers, ``unheard`` those of them without an active match in the
    hypothesis, and ``others`` the active speakers of the hypothesis without an active match in the reference.
    """

    start: float
    end: float
    speaking: int
    unheard: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def counts(self) -> DerCounts:
        """Reference speech and errors, in seconds of speaker time."""
        step, unheard, others = self.end - self.start, len(self.unheard), len(self.others)
        return DerCounts(
            step * self.speaking,
            step * max(0, unheard - others),
            step * max(0, others - unheard),
            step * min(unheard, others),
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The :data:`KINDS` of error in this stretch."""
        counts = self.counts
        found = zip(KINDS, (counts.miss, counts.false_alarm, counts.confusion), strict=True)
        return tuple(kind for kind, count in found if count)

    def __str__(self) -> str:
        """Return, for example, ``miss: Ada``, ``false alarm: speaker_1`` or ``confusion: Ada as speaker_1``."""
        who = [", ".join(names) for names in (self.unheard, self.others) if names]
        return f"{' and '.join(self.kinds) or 'right'}: {' as '.join(who)}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a hypothesis with the reference of a recording.

    ``pairs`` maps speakers of the hypothesis to their reference speakers, ``scored`` has the scored parts (start, end)
    in seconds, and ``stretches`` all speech in them, of either side, in order of time.
    """

    pairs: Mapping[str, str] = field(default_factory=dict)
    scored: Regions = ()
    stretches: tuple[Stretch, ...] = ()

    @property
    def by_overlap(self) -> dict[int, DerCounts]:
        """Speech and errors by the number of reference speakers who speak at once; 0 has only false alarms."""
        counts: dict[int, DerCounts] = {}
        for stretch in self.stretches:
            counts[stretch.speaking] = counts.get(stretch.speaking, DerCounts()) + stretch.counts
        return dict(sorted(counts.items()))

    @property
    def total(self) -> DerCounts:
        """Speech and errors of the whole recording."""
        return sum(self.by_overlap.values(), DerCounts())

    @property
    def errors(self) -> tuple[Stretch, ...]:
        """The stretches with errors, to look at or listen to; those that touch and have the same speakers are joined.

        Their counts add up to the total errors.
        """
        found: list[Stretch] = []
        for stretch in self.stretches:
            if not (stretch.unheard or stretch.others) or stretch.end - stretch.start < _SHORTEST_S:
                continue
            last = found[-1] if found else None
            if last and stretch.start - last.end < _SHORTEST_S and _alike(last, stretch):
                found[-1] = replace(last, end=stretch.end)
            else:
                found.append(stretch)
        return tuple(found)


def compared(
    reference: Turns, hypothesis: Turns, uem: Parts | None = None, protocol: str | Protocol = FULL
) -> Comparison:
    """Compare a hypothesis with a reference, under the mapping of speakers that has the fewest errors.

    Overlapping and touching turns of one speaker count as one, so they have no border (and no collar) between them.
    Without a UEM, the scored region is that of :func:`sortformer.metrics.region.scored_region`.

    Raises:
        ConfigError: when there is no protocol of that name.
        InputError: when a side is not turns.
    """
    from pyannote.metrics.diarization import DiarizationErrorRate

    protocol = protocol_named(protocol)
    metric = DiarizationErrorRate()
    ours, theirs, region = in_pyannote(reference, hypothesis, uem)
    total_collar_s = 2 * protocol.collar_s  # pyannote centres a collar of this whole width on each border
    kept = metric.extrude(region, ours, collar=total_collar_s, skip_overlap=protocol.skip_overlap)
    ours, theirs = (each.crop(kept, mode="intersection") for each in (ours, theirs))
    pairs = {str(said): str(there) for said, there in paired(theirs, ours).items()}
    scored = tuple((segment.start, segment.end) for segment in kept)
    return Comparison(pairs, scored, tuple(_stretches(ours, theirs, pairs)))


def paired(one: Annotation, other: Annotation) -> dict[Hashable, Hashable]:
    """Map labels of ``one`` to labels of ``other`` so as to maximise their common time.

    pyannote's own mapper does the same, in time that grows with the square of the number of turns.
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = ({label: at for at, label in enumerate(each.labels())} for each in (one, other))
    common_s = np.zeros((len(rows), len(columns)))
    for start, end, there, said in _together(one, other):
        for label in there:
            for match in said:
                common_s[rows[label], columns[match]] += end - start
    labels, matches = tuple(rows), tuple(columns)
    pairs = zip(*linear_sum_assignment(common_s, maximize=True), strict=True)
    return {labels[row]: matches[column] for row, column in pairs if common_s[row, column] > 0}


def _stretches(ours: Annotation, theirs: Annotation, pairs: Mapping[str, str]) -> Iterator[Stretch]:
    for start, end, there, said in _together(ours, theirs):
        heard = {pairs[each]: each for each in said if pairs.get(each) in there}
        unheard, others = sorted(there - heard.keys()), sorted(said - set(heard.values()))
        yield Stretch(start, end, len(there), tuple(unheard), tuple(others))


def _together(one: Annotation, other: Annotation) -> Iterator[tuple[float, float, set[Any], set[Any]]]:
    """Yield stretches (start, end) in which the active labels of both do not change, and these labels."""
    spoken = (
        (segment.start, segment.end, (side, label))
        for side, each in enumerate((one, other))
        for label in each.labels()
        for segment in each.label_timeline(label)
    )
    for start, end, active in moments(spoken):
        first, second = ({label for whose, label in active if whose == side} for side in (0, 1))
        yield start, end, first, second


def _alike(one: Stretch, other: Stretch) -> bool:
    return replace(one, start=0, end=0) == replace(other, start=0, end=0)


def in_pyannote(reference: Turns, hypothesis: Turns, uem: Parts | None) -> tuple[Annotation, Annotation, Timeline]:
    """Return both sides, touching turns of one speaker joined, and the scored region, as objects of pyannote."""
    from pyannote.core import Segment, Timeline

    region = scored_region(reference, hypothesis, uem)
    scored = Timeline([Segment(start, end) for start, end in region.parts])
    return to_pyannote(merged(reference)), to_pyannote(merged(hypothesis)), scored

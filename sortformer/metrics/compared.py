"""Where two diarizations of one recording differ: stretch by stretch, whom a reference has and a hypothesis has not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sortformer.annotation import merged, moments, to_pyannote
from sortformer.metrics.counts import DerCounts
from sortformer.metrics.protocol import FULL, Protocol, protocol_named
from sortformer.metrics.region import Parts, Turns, scored_region

if TYPE_CHECKING:
    from pyannote.core import Annotation, Timeline

__all__ = ["KINDS", "Stretch", "compared", "errors", "in_pyannote", "paired"]

KINDS = ("miss", "false alarm", "confusion")
"""What can be wrong."""

_SHORTEST_S = 1e-6  # what is shorter is the noise of binary fractions


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds in which the same people speak all the while, by the reference and by the hypothesis.

    ``speaking`` is how many the reference has, ``unheard`` those of them with whom nobody is paired who speaks in the
    hypothesis, and ``others`` the speakers of the hypothesis who are paired with nobody who speaks.
    """

    start: float
    end: float
    speaking: int
    unheard: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def counts(self) -> DerCounts:
        """Speaker time and errors, in seconds."""
        step, unheard, others = self.end - self.start, len(self.unheard), len(self.others)
        return DerCounts(
            step * self.speaking,
            step * max(0, unheard - others),
            step * max(0, others - unheard),
            step * min(unheard, others),
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which of :data:`KINDS` there are."""
        counts = self.counts
        found = zip(KINDS, (counts.miss, counts.false_alarm, counts.confusion), strict=True)
        return tuple(kind for kind, count in found if count)

    def __str__(self) -> str:
        """Such as ``miss: Ada``, ``false alarm: speaker_1`` or ``confusion: Ada as speaker_1``."""
        who = [", ".join(names) for names in (self.unheard, self.others) if names]
        return f"{' and '.join(self.kinds) or 'right'}: {' as '.join(who)}"


def compared(
    reference: Turns, hypothesis: Turns, uem: Parts | None = None, protocol: str | Protocol = FULL
) -> Iterator[Stretch]:
    """Yield what is scored (see :func:`sortformer.metrics.der.der`), in order of time; pairs are the recording's.

    Raises:
        ConfigError: when there is no protocol of that name.
    """
    ours, theirs, pairs = paired(reference, hypothesis, uem, protocol)
    stretches = (
        (segment.start, segment.end, (side, label))
        for side, each in enumerate((ours, theirs))
        for label in each.labels()
        for segment in each.label_timeline(label)
    )
    for start, end, active in moments(stretches):
        there, said = ({label for whose, label in active if whose == side} for side in (0, 1))
        heard = {pairs[each]: each for each in said if pairs.get(each) in there}
        unheard, others = sorted(there - heard.keys()), sorted(said - set(heard.values()))
        yield Stretch(start, end, len(there), tuple(unheard), tuple(others))


def paired(
    reference: Turns, hypothesis: Turns, uem: Parts | None, protocol: str | Protocol
) -> tuple[Annotation, Annotation, dict[str, str]]:
    """Return both sides as far as they are scored, and the reference speaker of each one of the hypothesis who has one.

    Raises:
        ConfigError: when there is no protocol of that name.
    """
    from pyannote.metrics.diarization import DiarizationErrorRate

    protocol = protocol_named(protocol)
    metric = DiarizationErrorRate()
    ours, theirs, scored = in_pyannote(reference, hypothesis, uem)
    total_collar_s = 2 * protocol.collar_s  # pyannote centres a collar of this whole width on each border
    kept = metric.extrude(scored, ours, collar=total_collar_s, skip_overlap=protocol.skip_overlap)
    ours, theirs = (each.crop(kept, mode="intersection") for each in (ours, theirs))
    pairs = metric.optimal_mapping(ours, theirs)
    return ours, theirs, {str(said): str(there) for said, there in pairs.items()}


def errors(
    reference: Turns, hypothesis: Turns, uem: Parts | None = None, protocol: str | Protocol = FULL
) -> tuple[Stretch, ...]:
    """Return where and in whom the two differ, to look at or to listen to; what is alike and touches is one.

    Their counts add up to the errors that ``der`` counts. Arguments and errors raised are those of ``der``.
    """
    found: list[Stretch] = []
    for stretch in compared(reference, hypothesis, uem, protocol):
        if not stretch.kinds or stretch.end - stretch.start < _SHORTEST_S:
            continue
        last = found[-1] if found else None
        if (
            last
            and stretch.start - last.end < _SHORTEST_S
            and replace(last, end=stretch.end) == replace(stretch, start=last.start)
        ):
            found[-1] = replace(last, end=stretch.end)
        else:
            found.append(stretch)
    return tuple(found)


def in_pyannote(reference: Turns, hypothesis: Turns, uem: Parts | None) -> tuple[Annotation, Annotation, Timeline]:
    """Return both sides, touching turns of one speaker joined, and the scored region, as pyannote has them."""
    from pyannote.core import Segment, Timeline

    region = scored_region(reference, hypothesis, uem)
    scored = Timeline([Segment(start, end) for start, end in region.parts])
    return to_pyannote(merged(reference)), to_pyannote(merged(hypothesis)), scored

"""Diarization error rate and Jaccard error rate of one recording, counted by pyannote.metrics.

It is imported when the first recording is scored, because it takes about two seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sortformer.annotation import Diarization, Turn, merged, to_pyannote
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.protocol import FULL, Protocol
from sortformer.metrics.region import scored_region

if TYPE_CHECKING:
    from pyannote.core import Annotation, Timeline

__all__ = ["der", "jer", "speaker_counts"]

Turns = Sequence[Turn] | Diarization


def der(
    reference: Turns,
    hypothesis: Turns,
    uem: Iterable[tuple[float, float]] | None = None,
    protocol: Protocol = FULL,
) -> DerCounts:
    """Count miss, false alarm and confusion in seconds, with the pairing of speakers that has the fewest errors.

    Overlapping and touching turns of one speaker count as one, so they have no border (and no collar) between them.
    Where no UEM is given, :func:`sortformer.metrics.region.scored_region` says what is scored.
    """
    from pyannote.metrics.diarization import DiarizationErrorRate

    total_collar_s = 2 * protocol.collar_s  # pyannote centres a collar of this whole width on each border
    metric = DiarizationErrorRate(collar=total_collar_s, skip_overlap=protocol.skip_overlap)
    ours, theirs, scored = _in_pyannote(reference, hypothesis, uem)
    counts = metric.compute_components(ours, theirs, uem=scored)
    return DerCounts(counts["total"], counts["missed detection"], counts["false alarm"], counts["confusion"])


def jer(reference: Turns, hypothesis: Turns, uem: Iterable[tuple[float, float]] | None = None) -> JerCounts:
    """Count Jaccard errors: for each reference speaker, 1 - intersection / union with the speaker paired with it.

    Without collar and with overlap under any protocol, as in the Second DIHARD Challenge evaluation plan, section 4.2.
    Speakers are paired so that they are together for the longest time.
    """
    from pyannote.metrics.diarization import JaccardErrorRate

    ours, theirs, scored = _in_pyannote(reference, hypothesis, uem)
    counts = JaccardErrorRate().compute_components(ours, theirs, uem=scored)
    return JerCounts(counts["speaker error"], round(counts["speaker count"]))


def speaker_counts(
    reference: Turns, hypothesis: Turns, uem: Iterable[tuple[float, float]] | None = None
) -> tuple[int, int]:
    """Return how many speakers the reference and the hypothesis have in the scored region."""
    parts = scored_region(reference, hypothesis, uem).parts
    ours, theirs = (
        len({turn.speaker for turn in turns for start, end in parts if turn.start < end and start < turn.end})
        for turns in (reference, hypothesis)
    )
    return ours, theirs


def _in_pyannote(
    reference: Turns, hypothesis: Turns, uem: Iterable[tuple[float, float]] | None
) -> tuple[Annotation, Annotation, Timeline]:
    from pyannote.core import Segment, Timeline

    region = scored_region(reference, hypothesis, uem)
    scored = Timeline([Segment(start, end) for start, end in region.parts])
    return to_pyannote(merged(reference)), to_pyannote(merged(hypothesis)), scored

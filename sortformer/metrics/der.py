"""Diarization error rate and Jaccard error rate of one recording, by pyannote.metrics.

It pairs the speakers, and says what a collar and overlap leave out; Jaccard errors it counts as well. It is imported
when the first recording is scored, because it takes about two seconds. Where NIST's md-eval differs is written in
``recipes/SCORING.md``, with an example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortformer.annotation import merged, moments, to_pyannote
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.protocol import FULL, Protocol, protocol_named
from sortformer.metrics.region import Parts, Turns, scored_region

if TYPE_CHECKING:
    from pyannote.core import Annotation, Timeline

__all__ = ["der", "der_by_overlap", "jer", "pairing", "speaker_counts"]


def der(
    reference: Turns,
    hypothesis: Turns,
    uem: Parts | None = None,
    protocol: str | Protocol = FULL,
) -> DerCounts:
    """Count miss, false alarm and confusion in seconds, with the pairing of speakers that has the fewest errors.

    Overlapping and touching turns of one speaker count as one, so they have no border (and no collar) between them.
    Where no UEM is given, :func:`sortformer.metrics.region.scored_region` says what is scored.

    Raises:
        ConfigError: when there is no protocol of that name.
    """
    return sum(der_by_overlap(reference, hypothesis, uem, protocol).values(), DerCounts())


def der_by_overlap(
    reference: Turns,
    hypothesis: Turns,
    uem: Parts | None = None,
    protocol: str | Protocol = FULL,
) -> dict[int, DerCounts]:
    """Count as :func:`der` does, apart for each number of reference speakers who speak at once; the sum is its result.

    The pairing of speakers is that of the whole recording. Key 0 is where nobody speaks: false alarm only.
    """
    from pyannote.metrics.diarization import DiarizationErrorRate

    protocol = protocol_named(protocol)
    metric = DiarizationErrorRate()
    ours, theirs, scored = _in_pyannote(reference, hypothesis, uem)
    total_collar_s = 2 * protocol.collar_s  # pyannote centres a collar of this whole width on each border
    kept = metric.extrude(scored, ours, collar=total_collar_s, skip_overlap=protocol.skip_overlap)
    ours, theirs = (each.crop(kept, mode="intersection") for each in (ours, theirs))
    pairs = metric.optimal_mapping(ours, theirs)
    stretches = (
        (segment.start, segment.end, (side, label))
        for side, each in enumerate((ours, theirs))
        for label in each.labels()
        for segment in each.label_timeline(label)
    )
    counts: dict[int, DerCounts] = {}
    for start, end, active in moments(stretches):
        there, said = ({label for whose, label in active if whose == side} for side in (0, 1))
        right = sum(pairs.get(each) in there for each in said)
        step = end - start
        counts[len(there)] = counts.get(len(there), DerCounts()) + DerCounts(
            step * len(there),
            step * max(0, len(there) - len(said)),
            step * max(0, len(said) - len(there)),
            step * (min(len(there), len(said)) - right),
        )
    return dict(sorted(counts.items()))


def pairing(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> dict[str, str]:
    """Return the reference speaker with whom each speaker of the hypothesis is paired; some have none."""
    from pyannote.metrics.diarization import DiarizationErrorRate

    ours, theirs, scored = _in_pyannote(reference, hypothesis, uem)
    pairs = DiarizationErrorRate().optimal_mapping(ours.crop(scored), theirs.crop(scored))
    return {str(said): str(there) for said, there in pairs.items()}


def jer(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> JerCounts:
    """Count Jaccard errors: for each reference speaker, 1 - intersection / union with the speaker paired with it.

    Without collar and with overlap under any protocol, as in the Second DIHARD Challenge evaluation plan, section 4.2.
    Speakers are paired so that they are together for the longest time.
    """
    from pyannote.metrics.diarization import JaccardErrorRate

    ours, theirs, scored = _in_pyannote(reference, hypothesis, uem)
    counts = JaccardErrorRate().compute_components(ours, theirs, uem=scored)
    speakers = round(counts["speaker count"])
    heard = 0 if speakers else len(theirs.crop(scored).labels())
    return JerCounts(counts["speaker error"], speakers, heard)


def speaker_counts(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> tuple[int, int]:
    """Return how many speakers the reference and the hypothesis have in the scored region."""
    parts = scored_region(reference, hypothesis, uem).parts
    ours, theirs = (
        len({turn.speaker for turn in turns for start, end in parts if turn.start < end and start < turn.end})
        for turns in (reference, hypothesis)
    )
    return ours, theirs


def _in_pyannote(reference: Turns, hypothesis: Turns, uem: Parts | None) -> tuple[Annotation, Annotation, Timeline]:
    from pyannote.core import Segment, Timeline

    region = scored_region(reference, hypothesis, uem)
    scored = Timeline([Segment(start, end) for start, end in region.parts])
    return to_pyannote(merged(reference)), to_pyannote(merged(hypothesis)), scored

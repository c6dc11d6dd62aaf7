"""Diarization error rate and Jaccard error rate of one recording, by pyannote.metrics.

It excludes collars and overlap, and counts Jaccard errors. It is imported when the first recording is scored, because
that takes about two seconds. ``recipes/SCORING.md`` explains differences to NIST's md-eval, with an example.
"""

from __future__ import annotations

from sortformer.annotation import Turns
from sortformer.metrics.compared import compared, in_pyannote, paired
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.protocol import FULL, Protocol
from sortformer.metrics.region import Parts, scored_region

__all__ = ["der", "jer", "speaker_counts"]


def der(
    reference: Turns,
    hypothesis: Turns,
    uem: Parts | None = None,
    protocol: str | Protocol = FULL,
) -> DerCounts:
    """Count miss, false alarm and confusion in seconds.

    Scored parts and exceptions are those of :func:`sortformer.metrics.compared.compared`.
    """
    return compared(reference, hypothesis, uem, protocol).total


def jer(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> JerCounts:
    """Count Jaccard errors: for each reference speaker, 1 - intersection / union with the speaker mapped to it.

    Without collar and with overlap, whatever the protocol, as in the Second DIHARD Challenge evaluation plan, section
    4.2. The mapping of speakers maximises the time in which both are active.
    """
    from pyannote.metrics.diarization import JaccardErrorRate

    ours, theirs, scored = in_pyannote(reference, hypothesis, uem)
    metric = JaccardErrorRate()
    metric.mapper_ = paired  # pyright: ignore[reportAttributeAccessIssue] (any function of two annotations)
    counts = metric.compute_components(ours, theirs, uem=scored)
    speakers = round(counts["speaker count"])
    heard = 0 if speakers else len(theirs.crop(scored).labels())
    return JerCounts(counts["speaker error"], speakers, heard)


def speaker_counts(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> tuple[int, int]:
    """Return the numbers of speakers of the reference and of the hypothesis in the scored region."""
    parts = scored_region(reference, hypothesis, uem).parts
    ours, theirs = (
        len({turn.speaker for turn in turns for start, end in parts if turn.start < end and start < turn.end})
        for turns in (reference, hypothesis)
    )
    return ours, theirs

"""Diarization error rate and Jaccard error rate of one recording, by pyannote.metrics.

It pairs the speakers, and says what a collar and overlap leave out; Jaccard errors it counts as well. It is imported
when the first recording is scored, because it takes about two seconds. Where NIST's md-eval differs is written in
``recipes/SCORING.md``, with an example.
"""

from __future__ import annotations

from sortformer.metrics.compared import compared, in_pyannote
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.protocol import FULL, Protocol
from sortformer.metrics.region import Parts, Turns, scored_region

__all__ = ["der", "jer", "speaker_counts"]


def der(
    reference: Turns,
    hypothesis: Turns,
    uem: Parts | None = None,
    protocol: str | Protocol = FULL,
) -> DerCounts:
    """Count miss, false alarm and confusion in seconds.

    What counts, and the errors raised, are those of :func:`sortformer.metrics.compared.compared`.
    """
    return compared(reference, hypothesis, uem, protocol).total


def jer(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> JerCounts:
    """Count Jaccard errors: for each reference speaker, 1 - intersection / union with the speaker paired with it.

    Without collar and with overlap under any protocol, as in the Second DIHARD Challenge evaluation plan, section 4.2.
    Speakers are paired so that they are together for the longest time.
    """
    from pyannote.metrics.diarization import JaccardErrorRate

    ours, theirs, scored = in_pyannote(reference, hypothesis, uem)
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

"""Calibration of the confidence of turns: its error, and settings fitted to reduce it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sortformer.annotation import Turns, merged
from sortformer.config.confidence import ConfidenceConfig, logit
from sortformer.intervals import moments
from sortformer.metrics.compared import compared
from sortformer.metrics.region import Parts, scored_region

__all__ = ["FEWEST_TURNS", "Judged", "calibration_error", "fitted", "judged"]

FEWEST_TURNS = 50
"""Fewer are not enough for a fit."""

_BINS = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """A turn of a hypothesis, scored against the reference.

    Attributes:
        confidence: its confidence.
        right: the share of its time in which the reference speaker mapped to its speaker is active.
        seconds: its duration; both this and ``right`` count the scored parts only.
    """

    confidence: float
    right: float
    seconds: float


def judged(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> list[Judged]:
    """Score the turns of a hypothesis that have a confidence and lie, at least in part, in the scored region.

    Speakers are mapped as for the DER; a speaker without a match is never right. Without a UEM, the region is that of
    :func:`sortformer.metrics.region.scored_region`.
    """
    parts = scored_region(reference, hypothesis, uem).parts
    pairs = compared(reference, hypothesis, parts).pairs
    turns = [turn for turn in hypothesis if turn.confidence is not None]
    seconds, right = np.zeros((2, len(turns)))
    stretches = (
        *((start, end, "scored") for start, end in parts),
        *((turn.start, turn.end, ("spoken", turn.speaker)) for turn in merged(reference)),
        *((turn.start, turn.end, index) for index, turn in enumerate(turns)),
    )
    for start, end, active in moments(stretches):
        if "scored" in active:
            for index in active - {"scored"}:
                if isinstance(index, int):
                    seconds[index] += end - start
                    right[index] += (end - start) * (("spoken", pairs.get(turns[index].speaker)) in active)
    return [
        Judged(float(turn.confidence or 0), good / long, long)
        for turn, good, long in zip(turns, right.tolist(), seconds.tolist(), strict=True)
        if long > 0
    ]


def calibration_error(turns: Sequence[Judged]) -> float:
    """Return the expected calibration error, over ten bins of confidence; NaN without turns.

    Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning", AAAI 2015. Turns are weighted by
    their time, because a turn may be right in part; each bin holds a tenth of the time.
    """
    if not turns:
        return float("nan")
    said, right, seconds = _columns(sorted(turns, key=lambda turn: turn.confidence))
    middle = np.cumsum(seconds) - seconds / 2
    off = np.bincount((_BINS * middle / seconds.sum()).astype(int), seconds * (said - right))
    return float(np.abs(off).sum() / seconds.sum())


def fitted(turns: Sequence[Judged]) -> ConfidenceConfig | None:
    """Fit the settings that map mean probabilities, here the confidence of turns, to the share of time that is right.

    Logistic regression in which all seconds of speech have the same weight. The targets are smoothed towards one half,
    as by one more turn that is right and one that is wrong (Platt, 1999, section 2.2). None for fewer than 50 turns.
    """
    if len(turns) < FEWEST_TURNS:
        return None
    _, right, seconds = _columns(turns)
    weights = seconds / seconds.sum()
    good = len(turns) * float(weights @ right)
    highest, lowest = (good + 1) / (good + 2), 1 / (len(turns) - good + 2)
    target = lowest + (highest - lowest) * right
    scores = np.array([logit(turn.confidence) for turn in turns])

    def loss(values: np.ndarray) -> float:
        at = values[0] * scores + values[1]
        return float(weights @ (np.logaddexp(0, at) - target * at))

    slope, offset = minimize(loss, (1.0, 0.0), method="L-BFGS-B", bounds=((0, 50), (-100, 100))).x.tolist()
    return ConfidenceConfig(round(slope, 3), round(offset, 3))


def _columns(turns: Sequence[Judged]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    said, right, seconds = np.array([(turn.confidence, turn.right, turn.seconds) for turn in turns]).T
    return said, right, seconds

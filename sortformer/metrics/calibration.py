"""Does the confidence of turns say how often they are right? And what would say it better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sortformer.annotation import merged, moments
from sortformer.config.confidence import ConfidenceConfig, logit
from sortformer.metrics.compared import compared
from sortformer.metrics.region import Parts, Turns, scored_region

__all__ = ["FEWEST_TURNS", "Judged", "calibration_error", "fitted", "judged"]

FEWEST_TURNS = 50
"""With fewer there is nothing to fit by."""

_BINS = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """A turn of a hypothesis beside the truth.

    Attributes:
        confidence: what was said of it.
        right: the share of it in which the reference speaker speaks with whom its speaker is paired.
        seconds: how long it is; this and ``right`` are of the part that is scored.
    """

    confidence: float
    right: float
    seconds: float


def judged(reference: Turns, hypothesis: Turns, uem: Parts | None = None) -> list[Judged]:
    """Return what of a hypothesis' turns with a confidence is right, of those that are scored.

    Speakers are paired as for the DER; one who is paired with nobody is never right. Without a UEM,
    :func:`sortformer.metrics.region.scored_region` says what is scored.
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
    """Return the expected calibration error: by how much confidence is off, averaged over ten bins.

    Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning", AAAI 2015. Turns are put into bins
    by their confidence. What is counted is time and not turns, since a turn may be right in part: each bin holds a
    tenth of it. NaN where there are no turns.
    """
    if not turns:
        return float("nan")
    said, right, seconds = _columns(sorted(turns, key=lambda turn: turn.confidence))
    middle = np.cumsum(seconds) - seconds / 2
    part = np.minimum((_BINS * middle / seconds.sum()).astype(int), _BINS - 1)
    off = np.bincount(part, seconds * (said - right), _BINS)
    return float(np.abs(off).sum() / seconds.sum())


def fitted(turns: Sequence[Judged]) -> ConfidenceConfig | None:
    """Return the settings that turn mean probabilities, here the confidence of turns, into the share that is right.

    Logistic regression in which each second of speech counts alike. The shares that are right are drawn a little
    towards one half, as if one more turn were right and one more wrong (Platt, 1999, section 2.2). None where there are
    fewer than 50 turns.
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

"""Confidence of turns, calibrated from their mean probabilities."""

import math
from dataclasses import dataclass

from sortformer.config.checks import as_annotated, require

__all__ = ["ConfidenceConfig", "logit"]

_NEAREST = 1e-4  # to 0 and 1, which probabilities can equal in half precision


@dataclass(frozen=True, slots=True)
class ConfidenceConfig:
    """Map the mean probability of a turn to the fraction of it that is correct: sigmoid(slope logit(p) + offset).

    Platt, "Probabilistic Outputs for Support Vector Machines", 1999. Both parameters are fitted on recordings with
    references (``metrics.calibration.fitted``); 1 and 0 leave probabilities unchanged.

    Raises:
        ConfigError: when the slope is not between 0 and 50, or the offset not between -100 and 100.
    """

    slope: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        as_annotated(self)
        require(0 <= self.slope <= 50, f"the slope of confidence must be between 0 and 50, got {self.slope}")
        require(abs(self.offset) <= 100, f"the offset of confidence must be between -100 and 100, got {self.offset}")

    def of(self, probability: float) -> float:
        """Return the confidence of a turn from its mean probability."""
        return 1 / (1 + math.exp(-self.slope * logit(probability) - self.offset))


def logit(probability: float) -> float:
    """Return log(p / (1 - p)), with p clamped to [1e-4, 1 - 1e-4]."""
    p = min(max(probability, _NEAREST), 1 - _NEAREST)
    return math.log(p / (1 - p))

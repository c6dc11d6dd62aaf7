"""How sure a turn is: what its probabilities say, and how often those were right."""

import math
from dataclasses import dataclass

from sortformer.config.checks import as_annotated, require

__all__ = ["ConfidenceConfig", "logit"]

_NEAREST = 1e-4  # to 0 and to 1: half precision has probabilities that are 0 and 1


@dataclass(frozen=True, slots=True)
class ConfidenceConfig:
    """Turn the mean probability of a turn into the share of it that is right: sigmoid(slope logit(p) + offset).

    Platt, "Probabilistic Outputs for Support Vector Machines", 1999. Both numbers are fitted on recordings whose truth
    is known (``metrics.calibration.fitted``); 1 and 0 leave probabilities as they are.

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
        """Return the confidence of a turn with such a mean probability."""
        return 1 / (1 + math.exp(-self.slope * logit(probability) - self.offset))


def logit(probability: float) -> float:
    """Return log(p / (1 - p)), for p no nearer to 0 or 1 than 1e-4."""
    p = min(max(probability, _NEAREST), 1 - _NEAREST)
    return math.log(p / (1 - p))

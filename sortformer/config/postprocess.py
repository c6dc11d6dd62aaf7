"""How probabilities become turns: thresholds, padding and shortest durations."""

import math
from dataclasses import dataclass, fields

from sortformer.errors import ConfigError

__all__ = ["PostprocessConfig"]


@dataclass(frozen=True, slots=True)
class PostprocessConfig:
    """Hysteresis thresholds (probabilities) and durations (seconds), tuned per corpus and never part of the weights.

    A speaker starts above ``onset`` and stops below ``offset``. ``offset`` may exceed ``onset``: then nearly every
    frame ends a turn, and padding and gap filling join the pieces (NVIDIA's setting for DIHARD 3 has offset 1.0).

    Raises:
        ConfigError: when a threshold is outside [0, 1] or a duration is negative or not finite.
    """

    onset: float = 0.5
    offset: float = 0.5
    pad_on_s: float = 0.0
    pad_off_s: float = 0.0
    min_on_s: float = 0.0
    min_off_s: float = 0.0

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name.endswith("_s"):
                if not 0 <= value < math.inf:
                    raise ConfigError(f"{name} must be a number of seconds >= 0, got {value}")
            elif not 0 <= value <= 1:
                raise ConfigError(f"{name} must be a probability between 0 and 1, got {value}")

"""Post-processing of probabilities into turns: clustering, thresholds, padding and minimum durations."""

from dataclasses import dataclass, replace
from typing import Literal

from sortformer.config.checks import as_annotated, require
from sortformer.config.clustering import MOST_SPEAKERS, ClusteringConfig
from sortformer.config.confidence import ConfidenceConfig
from sortformer.grid import LONGEST_S

__all__ = ["PostprocessConfig"]


@dataclass(frozen=True, slots=True)
class PostprocessConfig:
    """Hysteresis thresholds (probabilities) and durations (seconds), tuned per corpus and never part of the weights.

    A speaker starts above ``onset`` and stops below ``offset``. ``offset`` may exceed ``onset``: then nearly every
    frame ends a turn, and padding and gap filling merge the pieces (NVIDIA's setting for DIHARD 3 has offset 1.0).

    ``decision`` is what the thresholds are compared with: "slots" uses the probability of each slot alone, as NVIDIA
    does; "least_error" the expected gain of naming a speaker, given the probabilities of the other slots (see
    ``postprocess.expected_gain``). The two differ where a model is sure that somebody speaks, but not who.

    ``clustering`` assigns speakers by the encoder's embeddings (None: by the model's slots). ``confidence`` maps the
    mean probability of a turn to its confidence (None: the probability itself).

    Raises:
        ConfigError: when the decision is unknown, a threshold is outside [0, 1], or a duration outside [0, 1e9].
    """

    onset: float = 0.5
    offset: float = 0.5
    pad_on_s: float = 0.0
    pad_off_s: float = 0.0
    min_on_s: float = 0.0
    min_off_s: float = 0.0
    decision: Literal["slots", "least_error"] = "slots"
    clustering: ClusteringConfig | None = None
    confidence: ConfidenceConfig | None = None

    def __post_init__(self) -> None:
        as_annotated(self)
        for name in ("onset", "offset"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"{name} must be a probability between 0 and 1, got {value}")
        for name in ("pad_on_s", "pad_off_s", "min_on_s", "min_off_s"):
            value = getattr(self, name)
            require(0 <= value <= LONGEST_S, f"{name} must be between 0 and {LONGEST_S:g} seconds, got {value}")

    @property
    def turn_delay_s(self) -> float:
        """Largest delay in seconds from the end of a turn until it is final; the latency of a stream comes on top.

        Speech that begins within ``min_off_s`` of the end is merged with the turn. If it begins just before
        ``min_off_s`` have passed, it is detected ``pad_on_s`` late, and may be dropped as too short until it has lasted
        ``min_on_s``. The tick to which times are rounded is included. The order of arrival is known by then: a speaker
        who began before the turn has spoken longer than ``min_on_s``, or is dropped.
        """
        return self.min_off_s + self.min_on_s + self.pad_on_s + 0.01

    def confidence_of(self, probability: float) -> float:
        """Return the confidence of a turn from its mean probability."""
        return probability if self.confidence is None else self.confidence.of(probability)

    def with_room_for(
        self, num_speakers: int | None = None, min_speakers: int | None = None, max_speakers: int | None = None
    ) -> "PostprocessConfig":
        """Return a copy whose clustering allows as many speakers as asked for, within its limit."""
        if self.clustering is None:
            return self
        usual = self.clustering.max_speakers
        wanted = num_speakers or max_speakers or (MOST_SPEAKERS if (min_speakers or 0) > usual else usual)
        room = min(max(wanted, usual), MOST_SPEAKERS)
        return replace(self, clustering=replace(self.clustering, max_speakers=room))

"""How probabilities become turns: whose voice it is, thresholds, padding and shortest durations."""

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
    frame ends a turn, and padding and gap filling join the pieces (NVIDIA's setting for DIHARD 3 has offset 1.0).

    ``decision`` says what the thresholds are compared with: with "slots" each slot's probability, by itself, as NVIDIA
    does; with "least_error" how much is expected to be gained by naming a speaker, given what the other slots say (see
    ``postprocess.expected_gain``). The two differ where a model knows that somebody speaks, and not who.

    ``clustering`` says who by the encoder's embeddings; None by the model's slots. ``confidence`` says how sure a turn
    is by its mean probability; None takes that as it is.

    Raises:
        ConfigError: when there is no such decision, a threshold is outside [0, 1], or a duration outside [0, 1e9].
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
        """Seconds of frames, at most, after the end of a turn until it is final; in a stream, its latency comes on top.

        Until ``min_off_s`` have passed, what comes may join the turn: also what begins just before that, is heard
        ``pad_on_s`` late, and may turn out to be nothing for as long as ``min_on_s``. The tick to which times are
        rounded is counted, too. Who arrived first is known by then: whoever began to speak before the turn has spoken
        longer than ``min_on_s``, or is none.
        """
        return self.min_off_s + self.min_on_s + self.pad_on_s + 0.01

    def confidence_of(self, probability: float) -> float:
        """Return the confidence of a turn with such a mean probability."""
        return probability if self.confidence is None else self.confidence.of(probability)

    def with_room_for(
        self, num_speakers: int | None = None, min_speakers: int | None = None, max_speakers: int | None = None
    ) -> "PostprocessConfig":
        """Return settings by which the speakers that are asked for can be told apart, as far as clustering can."""
        if self.clustering is None:
            return self
        usual = self.clustering.max_speakers
        wanted = num_speakers or max_speakers or (MOST_SPEAKERS if (min_speakers or 0) > usual else usual)
        room = min(max(wanted, usual), MOST_SPEAKERS)
        return replace(self, clustering=replace(self.clustering, max_speakers=room))

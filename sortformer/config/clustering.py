"""How speech is given to voices."""

from dataclasses import dataclass

from sortformer.config.checks import as_annotated
from sortformer.errors import ConfigError

__all__ = ["MOST_SPEAKERS", "ClusteringConfig"]

MOST_SPEAKERS = 40
"""Speakers that clustering tells apart at most: each frame weighs every voice against every other one."""


@dataclass(frozen=True, slots=True)
class ClusteringConfig:
    """Speech is given to whose voice it is, by the encoder's embeddings, and not to the slot that the head chose.

    Attributes:
        threshold: mean cosine distance between two groups of stretches of speech, above which they are two voices.
            Voices that take turns are two above 0.8 times the threshold already. Streams, whose stretches are shorter
            and scatter more, take 1.2 times the threshold, and 0.9 times that.
        max_speakers: the greatest number of voices, those who speak most, unless a call asks for more; 40 at most.

    Raises:
        ConfigError: when the threshold is not in (0, 2), or ``max_speakers`` is below 1 or above 40.
    """

    threshold: float
    max_speakers: int = 8

    def __post_init__(self) -> None:
        as_annotated(self)
        if not 0 < self.threshold < 2:
            raise ConfigError(f"the threshold of clustering must lie between 0 and 2, got {self.threshold}")
        if not 1 <= self.max_speakers <= MOST_SPEAKERS:
            raise ConfigError(f"clustering tells apart 1 to {MOST_SPEAKERS} speakers, got {self.max_speakers}")

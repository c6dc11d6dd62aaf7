"""How speech is assigned to voices by clustering."""

from dataclasses import dataclass

from sortformer.config.checks import as_annotated
from sortformer.errors import ConfigError

__all__ = ["MOST_SPEAKERS", "ClusteringConfig"]

MOST_SPEAKERS = 40
"""Largest number of speakers in clustering: each frame compares every voice with every other."""


@dataclass(frozen=True, slots=True)
class ClusteringConfig:
    """Clustering assigns speech to voices by the encoder's embeddings, instead of to the slots of the head.

    Attributes:
        threshold: mean cosine distance between two clusters of stretches of speech above which they are different
            voices; for voices that take turns, 0.8 times that. Streams, whose stretches are shorter and scatter more,
            use 1.2 times the threshold, and 0.9 times that for voices that take turns.
        max_speakers: largest number of voices, those that speak most, unless a call asks for more; at most 40.

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
            raise ConfigError(f"max_speakers of clustering must be 1 to {MOST_SPEAKERS}, got {self.max_speakers}")

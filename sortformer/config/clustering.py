"""How speech is given to voices."""

from dataclasses import dataclass

from sortformer.config.checks import as_annotated
from sortformer.errors import ConfigError

__all__ = ["ClusteringConfig"]


@dataclass(frozen=True, slots=True)
class ClusteringConfig:
    """Speech is given to whose voice it is, by the encoder's embeddings, and not to the slot that the head chose.

    Attributes:
        threshold: mean cosine distance between two groups of stretches of speech, above which they are two voices;
            in whole recordings two that take turns are two from 0.9 times as much on; streams, whose stretches are
            shorter and scatter more, go by 1.2 times as much.
        max_speakers: no more than so many, those who speak most.

    Raises:
        ConfigError: when the threshold is not in (0, 2), or ``max_speakers`` is below 1.
    """

    threshold: float
    max_speakers: int = 8

    def __post_init__(self) -> None:
        as_annotated(self)
        if not 0 < self.threshold < 2:
            raise ConfigError(f"the threshold of clustering must lie between 0 and 2, got {self.threshold}")
        if self.max_speakers < 1:
            raise ConfigError(f"clustering needs at least one speaker, got {self.max_speakers}")

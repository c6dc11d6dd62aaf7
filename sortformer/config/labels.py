"""How stored voices label new frames."""

import math
from dataclasses import dataclass

from sortformer.config.checks import as_annotated, require

__all__ = ["LabelConfig"]


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """Parameters of nearest-neighbour labelling by stored frames; see ``memory.labels``.

    Distances are squared Euclidean, between embeddings of length one: 0 for the same direction, 2 for orthogonal ones,
    4 for the opposite.
    """

    neighbours: int = 8
    """Number of stored frames that vote, or all if there are fewer."""
    temperature: float = 0.1
    """Increase in distance that reduces the weight of a vote to 1/e."""
    stranger: float = 0.65
    """Distance at which neighbours are as likely as an unknown speaker; infinite: no unknown speakers."""

    def __post_init__(self) -> None:
        as_annotated(self)
        require(self.neighbours >= 1, f"neighbours of labels must be at least 1, got {self.neighbours}")
        require(
            0 < self.temperature < math.inf,
            f"the temperature of labels must be above 0 and finite, got {self.temperature}",
        )
        require(
            self.stranger > 0, f"stranger, the distance of an unknown speaker, must be above 0, got {self.stranger}"
        )

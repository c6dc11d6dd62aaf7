"""How stored voices are read."""

import math
from dataclasses import dataclass

from sortformer.config.checks import as_annotated, require

__all__ = ["LabelConfig"]


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """How the labels of stored frames are read by the nearest of them; see ``memory.labels``.

    Distances are squared Euclidean ones between embeddings of length one: 0 for the same direction, 2 for a right
    angle, 4 for the opposite.
    """

    neighbours: int = 8
    """So many stored frames vote; all, where there are fewer."""
    temperature: float = 0.1
    """A frame farther by this much votes with 1/e of the weight."""
    stranger: float = 0.65
    """Neighbours at this distance are as likely somebody else's: infinite trusts them at any distance."""

    def __post_init__(self) -> None:
        as_annotated(self)
        require(self.neighbours >= 1, f"at least 1 neighbour is needed to read a label, got {self.neighbours}")
        require(
            0 < self.temperature < math.inf,
            f"the temperature of labels must be above 0 and finite, got {self.temperature}",
        )
        require(self.stranger > 0, f"the distance of a stranger must be above 0, got {self.stranger}")

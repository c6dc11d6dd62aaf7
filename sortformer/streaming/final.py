"""What is final in a stream, and what of it no update has returned yet."""

from dataclasses import dataclass, field

import numpy as np

from sortformer.annotation import Turn

__all__ = ["Final"]


@dataclass(slots=True)
class Final:
    """All final turns, and the frames and turns since the last update."""

    turns: list[Turn] = field(default_factory=list)
    new_probs: list[np.ndarray] = field(default_factory=list)  # (t, S) each
    new_turns: list[Turn] = field(default_factory=list)

    def add(self, probs: list[np.ndarray], turns: tuple[Turn, ...]) -> None:
        """Add what has become final."""
        self.new_probs += probs
        self.new_turns += turns
        self.turns += turns

    def take(self, slots: int) -> tuple[np.ndarray, tuple[Turn, ...]]:
        """Return the probabilities (t, ``slots``) and turns that are new, once."""
        probs = np.concatenate([np.zeros((0, slots), np.float32), *self.new_probs])
        turns = tuple(self.new_turns)
        self.new_probs, self.new_turns = [], []
        return probs, turns

"""One seed from several numbers."""

import numpy as np

__all__ = ["mixed_seed", "seed_of"]


def mixed_seed(*numbers: int) -> int:
    """Return 32 bits that depend on all bits of all numbers (at least 0).

    Of a seed torch's generator of the CPU takes the low 32 bits alone, so sums of shifted numbers lose the upper ones.
    """
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def seed_of(seed: int, number: int) -> int:
    """Return the seed of one step of a run, or of one conversation of a set, of which ``seed`` is that of the whole.

    What is new takes ``mixed_seed``: here the steps of two runs, if their seeds differ by one, meet a million steps on.
    This stays because recipes that were published have drawn by it.
    """
    return seed * 1_000_003 + number

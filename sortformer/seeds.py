"""Seeds derived from several numbers."""

import numpy as np

__all__ = ["mixed_seed", "seed_of"]


def mixed_seed(*numbers: int) -> int:
    """Return a seed of 32 bits that depends on all bits of all numbers (at least 0).

    Torch's CPU generator uses only the low 32 bits of a seed, so sums of shifted numbers would lose the upper ones.
    """
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def seed_of(seed: int, number: int) -> int:
    """Return the seed of one step of a run, or of one conversation of a set, from the ``seed`` of the whole.

    New code should use ``mixed_seed``: here, runs whose seeds differ by one share step seeds a million steps apart.
    Kept because published recipes depend on it.
    """
    return seed * 1_000_003 + number

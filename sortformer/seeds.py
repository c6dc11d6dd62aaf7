"""One seed from several numbers."""

import numpy as np

__all__ = ["mixed_seed"]


def mixed_seed(*numbers: int) -> int:
    """Return 32 bits that depend on all bits of all numbers (at least 0).

    Of a seed torch's generator of the CPU takes the low 32 bits alone, so sums of shifted numbers lose the upper ones.
    """
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])

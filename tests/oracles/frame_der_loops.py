"""Diarization error of one recording in frames: every pairing tried, every frame counted."""

from itertools import permutations


def best_counts(active, target):
    """(total, miss, false alarm, confusion) of the pairing with the fewest errors."""
    width = max(len(active[0]), len(target[0])) if len(active) else 0
    pairings = permutations(range(width))
    return min((counts(active, target, pairing) for pairing in pairings), key=lambda c: sum(c[1:]))


def sorted_counts(active, target):
    """Those of the pairing with the fewest errors that moves a speaker only to the slot of one who arrives at once."""

    def arrival(k):
        return next((t for t, speakers in enumerate(target) if k < len(speakers) and speakers[k]), None)

    pairings = [p for p in permutations(range(4)) if all(arrival(j) == arrival(k) for k, j in enumerate(p))]
    return min((counts(active, target, pairing) for pairing in pairings), key=lambda c: sum(c[1:]))


def counts(active, target, pairing):
    """pairing[k] is the reference speaker of slot k; numbers past either width mean none."""
    total = miss = false_alarm = confusion = 0
    for slots, speakers in zip(active, target, strict=True):
        said = {pairing[k] for k, on in enumerate(slots) if on}
        true = {k for k, on in enumerate(speakers) if on}
        right = len(said & true)
        total += len(true)
        miss += max(0, len(true) - len(said))
        false_alarm += max(0, len(said) - len(true))
        confusion += min(len(true), len(said)) - right
    return total, miss, false_alarm, confusion

"""Post-processing one tick at a time, in exact fractions, from the written description of NVIDIA's."""

from fractions import Fraction as F
from math import floor

TICK = F(1, 100)


def slot_segments(column, config, repeats):
    """Segments (start, end) in seconds, exact fractions on the 10 ms grid, of one slot's probabilities."""
    exact = {name: F(str(getattr(config, name))) for name in ("pad_on_s", "pad_off_s", "min_on_s", "min_off_s")}
    ticks = [p for p in column for _ in range(repeats)]

    segments = []
    speaking, start = False, F(0)
    for i, p in enumerate(ticks):
        if speaking:
            if p < config.offset:
                segments.append((start, i * TICK))
                speaking = False
        elif p > config.onset:
            speaking, start = True, i * TICK
    if speaking:
        segments.append((start, (len(ticks) - 1) * TICK))

    segments = [(max(F(0), a - exact["pad_on_s"]), b + exact["pad_off_s"]) for a, b in segments]
    segments = merge_touching(segments)
    segments = [(a, b) for a, b in segments if not b - a < exact["min_on_s"]]
    segments = fill_short_gaps(segments, exact["min_off_s"])
    end = len(ticks) * TICK
    segments = [(to_grid(a), min(to_grid(b), end)) for a, b in segments]
    return merge_touching([(a, b) for a, b in segments if b > a])


def merge_touching(segments):
    segments = list(segments)
    changed = True
    while changed:
        changed = False
        for i in range(len(segments)):
            for j in range(i + 1, len(segments)):
                (a, b), (c, d) = segments[i], segments[j]
                if a <= d and c <= b:
                    segments[i] = (min(a, c), max(b, d))
                    del segments[j]
                    changed = True
                    break
            if changed:
                break
    return sorted(segments)


def fill_short_gaps(segments, min_off):
    result = []
    for a, b in segments:
        if result and a - result[-1][1] < min_off:
            result[-1] = (result[-1][0], b)
        else:
            result.append((a, b))
    return result


def to_grid(time):
    return F(floor(time * 100 + F(1, 2)), 100)

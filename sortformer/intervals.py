"""Intervals of time: the numbers in them, their union and parts, and the moments at which they begin and end."""

import reprlib
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator
from operator import itemgetter
from typing import Any

from sortformer.errors import InputError

__all__ = ["Regions", "between", "clipped", "moments", "number", "union"]

Regions = tuple[tuple[float, float], ...]
"""Regions of a recording, each from a start to an end in seconds."""


def number(what: str, value: Any) -> float:
    """Return a caller's number, including numpy's, as a float.

    Raises:
        InputError: when it is something else.
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} must be a number, got {reprlib.repr(value)}") from None


def union(regions: Iterable[tuple[float, float]]) -> Regions:
    """Return the regions (start, end) sorted, joined where they touch or overlap, without empty ones.

    Raises:
        InputError: when they are not regions, one is not two numbers, or it ends before it starts.
    """
    if not isinstance(regions, Iterable):
        raise InputError(f"regions must be pairs (start, end) in seconds, got {reprlib.repr(regions)}")
    joined: list[tuple[float, float]] = []
    for start, end in sorted(map(_region, regions)):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif start < end:
            joined.append((start, end))
    return tuple(joined)


def _region(region: Any) -> tuple[float, float]:
    """Return a region, which may be a row of an array, as two floats."""
    try:
        first, last = region
        start, end = float(first), float(last)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"a region must be (start, end) in seconds, got {reprlib.repr(region)}") from None
    if not start <= end:
        raise InputError(f"a region needs start <= end in seconds, got {first} to {last}")
    return start, end


def clipped(regions: Iterable[tuple[float, float]], first: float, last: float) -> Regions:
    """Return the regions (start, end) cut to ``first`` to ``last``, in their order, without empty ones."""
    cut = ((max(first, start), min(last, end)) for start, end in regions)
    return tuple((start, end) for start, end in cut if start < end)


def between(regions: Regions, first: float, last: float) -> Regions:
    """Return what ``clipped`` does, of regions in the order of ``union``: only those that are cut are visited."""
    begin, end = bisect_right(regions, first, key=itemgetter(1)), bisect_left(regions, last, key=itemgetter(0))
    return clipped(regions[begin:end], first, last)


def moments(stretches: Iterable[tuple[float, float, Hashable]]) -> Iterator[tuple[float, float, set[Any]]]:
    """Yield the intervals between successive borders, from 0 on: start, end, and the set of who is active, maybe empty.

    ``stretches`` are (start, end, who); those of one speaker do not overlap.
    """
    edges = [(time, starts, who) for start, end, who in stretches for time, starts in ((start, True), (end, False))]
    active, before = set(), 0.0
    for time, starts, who in sorted(edges, key=lambda edge: edge[:2]):  # at equal times, ends come before starts
        if before < time:
            yield before, time, active.copy()
        (active.add if starts else active.discard)(who)
        before = time

"""Intervals: their union covers what they cover, and between their borders it is known who is active."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.errors import InputError
from sortformer.intervals import between, clipped, moments, union

regions = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)).map(lambda given: (given[0], sum(given))))


def cells(parts) -> set[int]:
    """Return the whole seconds that intervals cover."""
    return {second for start, end in parts for second in range(int(start), int(end))}


@given(regions)
def test_a_union_covers_the_same_in_parts_that_lie_apart(parts):
    joined = union(parts)
    assert cells(joined) == cells(parts)
    assert all(start < end for start, end in joined)
    assert all(before[1] < after[0] for before, after in pairwise(joined))


def test_a_region_that_ends_before_it_starts_is_refused():
    with pytest.raises(InputError, match="a region needs start <= end in seconds, got 2 to 1"):
        union([(2, 1)])


def test_regions_may_be_the_rows_of_an_array():
    rows = np.array([[12.0, 20.0], [1.0, 4.0], [3.0, 10.0]], np.float32)
    assert union(rows) == ((1.0, 10.0), (12.0, 20.0))
    assert {type(time) for region in union(rows) for time in region} == {float}


@pytest.mark.parametrize("region", [("a", "b"), (None, 2), 1, "1", (1, 2, 3), (np.zeros(2), 3)])
def test_what_is_no_region_is_refused_and_shown(region: Any):
    with pytest.raises(InputError, match=r"a region must be \(start, end\) in seconds, got"):
        union([(0, 1), region])


@pytest.mark.parametrize("regions", [None, 5])
def test_what_are_no_regions_is_refused_and_shown(regions: Any):
    with pytest.raises(InputError, match=rf"regions must be pairs \(start, end\) in seconds, got {regions}"):
        union(regions)


@given(regions, st.integers(0, 20), st.integers(0, 20))
def test_what_is_clipped_is_what_lies_within(parts, first, last):
    assert cells(clipped(parts, first, last)) == cells(parts) & set(range(first, last))


@given(regions, st.integers(0, 20), st.integers(0, 20))
def test_what_is_between_two_times_is_what_is_clipped(parts, first, last):
    assert between(union(parts), first, last) == clipped(union(parts), first, last)


def test_of_many_regions_only_those_between_two_times_are_visited():
    class Many(tuple[tuple[float, float], ...]):
        def __iter__(self):
            raise AssertionError("all regions are visited")

    assert between(Many((time, time + 0.5) for time in range(1000)), 7.25, 8.25) == ((7.25, 7.5), (8, 8.25))


def test_between_borders_it_is_known_who_is_active():
    assert list(moments([(1, 2, "a"), (0, 1, "a"), (1.5, 3, "b")])) == [
        (0, 1, {"a"}),
        (1, 1.5, {"a"}),
        (1.5, 2, {"a", "b"}),
        (2, 3, {"b"}),
    ]
    assert list(moments([(1, 2, "a")])) == [(0, 1, set()), (1, 2, {"a"})]

"""Frame error: equal to the best of all pairings; zero against itself."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sortformer.errors import InputError
from sortformer.metrics.counts import DerCounts
from sortformer.metrics.frames import frame_der
from tests.oracles import frame_der_loops as oracle


@st.composite
def pairs(draw):
    frames = draw(st.integers(0, 12))
    shape = st.integers(1, 4).map(lambda width: (frames, width))
    return tuple(draw(arrays.arrays(bool, draw(shape))) for _ in range(2))


@given(pairs())
def test_best_order_is_the_best_of_all_pairings(pair):
    active, target = pair
    expected = oracle.best_counts(active, target) if len(active) else (0, 0, 0, 0)
    assert astuple(frame_der(active, target)) == expected


@given(pairs())
def test_sorted_order_pairs_column_with_column_but_for_columns_that_begin_at_once(pair):
    active, target = pair
    assert astuple(frame_der(active, target, order="sorted")) == oracle.sorted_counts(active, target)


@given(pairs())
def test_an_activity_against_itself_has_no_error(pair):
    for order in ("best", "sorted"):
        assert frame_der(pair[0], pair[0].astype(np.float32), order).errors == 0


def test_probabilities_above_one_half_are_active():
    probs, target = np.array([[0.5], [0.51], [0.2]]), np.array([[0], [1], [1]])
    assert frame_der(probs, target) == DerCounts(total=2, miss=1, false_alarm=0, confusion=0)


def test_swapped_columns_are_confusion_in_sorted_order_only():
    target = np.array([[1, 0], [1, 0], [0, 1]])
    assert frame_der(target[:, ::-1], target).rate == 0
    assert frame_der(target[:, ::-1], target, order="sorted") == DerCounts(3, 0, 0, 3)


def test_speakers_who_arrive_at_once_may_take_each_others_slots():
    target = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1]])
    assert frame_der(target[:, [1, 0, 2]], target, order="sorted").errors == 0
    assert frame_der(target[:, [2, 1, 0]], target, order="sorted") == DerCounts(5, 0, 0, 3)


@pytest.mark.parametrize(("active", "target"), [((3, 2), (4, 2)), ((3,), (3, 2)), ((3, 2), (3,))])
def test_other_shapes_are_refused(active, target):
    with pytest.raises(InputError, match="the same T"):
        frame_der(np.zeros(active), np.zeros(target))

"""Errors by number of simultaneous speakers: they add up to the total, and equal counts of cells."""

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Turn
from sortformer.metrics.compared import compared
from sortformer.metrics.counts import DerCounts
from sortformer.metrics.der import der
from sortformer.metrics.protocol import FAIR, FORGIVING, FULL
from tests.oracles.der_cells import speakers_by_cell
from tests.strategies import turn_lists

turns = turn_lists(end_s=6, speakers="abc", max_size=6)


@given(turns, turns, st.sampled_from([FULL, FAIR, FORGIVING]))
def test_the_classes_add_up_to_the_whole(reference, hypothesis, protocol):
    uem = [(0.5, 3.0), (3.5, 6.0)]
    classes = compared(reference, hypothesis, uem, protocol).by_overlap
    whole = der(reference, hypothesis, uem, protocol)
    assert list(classes) == sorted(classes)
    assert astuple(sum(classes.values(), DerCounts())) == pytest.approx(astuple(whole), abs=1e-6)
    if protocol.skip_overlap:
        assert all(number < 2 or counts.total < 1e-6 for number, counts in classes.items())


@given(turns, turns)
def test_miss_and_false_alarm_of_a_class_are_those_of_its_cells(reference, hypothesis):
    cells = list(zip(speakers_by_cell(reference, 600), speakers_by_cell(hypothesis, 600), strict=True))
    classes = compared(reference, hypothesis, [(0, 6)]).by_overlap
    for number in range(4):
        inside = [len(said) for there, said in cells if len(there) == number]
        found = classes.get(number, DerCounts())
        assert found.miss == pytest.approx(sum(max(0, number - said) for said in inside) / 100, abs=1e-6)
        assert found.false_alarm == pytest.approx(sum(max(0, said - number) for said in inside) / 100, abs=1e-6)


def test_the_pairing_is_that_of_the_whole_recording():
    reference = [Turn(0, 8, "a"), Turn(6, 10, "b")]
    hypothesis = [Turn(0, 6, "x"), Turn(6, 10, "y")]  # y is paired with b, also during overlap with a
    classes = compared(reference, hypothesis, [(0, 12)]).by_overlap
    assert classes == {1: DerCounts(8, 0, 0, 0), 2: DerCounts(4, 2, 0, 0)}

"""Errors over time: they add up to the counts, and name the speakers."""

from dataclasses import astuple

import pytest
from hypothesis import given

from sortformer.annotation import Diarization, Turn
from sortformer.metrics.compared import compared
from sortformer.metrics.counts import DerCounts
from sortformer.metrics.der import der
from tests.metrics.test_der import protocols, turns, uems


@given(turns, turns, uems(), protocols)
def test_the_errors_add_up_to_those_that_are_counted(reference, hypothesis, uem, protocol):
    found = compared(reference, hypothesis, uem, protocol).errors
    total = sum((each.counts for each in found), DerCounts())
    counted = der(reference, hypothesis, uem, protocol)
    assert astuple(total)[1:] == pytest.approx(astuple(counted)[1:], abs=1e-4)


@given(turns, turns, uems(), protocols)
def test_they_are_in_order_in_what_is_scored_and_about_who_speaks_then(reference, hypothesis, uem, protocol):
    found = compared(reference, hypothesis, uem, protocol)
    before, pairs = 0.0, found.pairs
    for each in found.errors:
        assert before - 1e-6 <= each.start < each.end
        assert any(start - 1e-6 <= each.start and each.end <= end + 1e-6 for start, end in uem)
        before, middle = each.end, (each.start + each.end) / 2
        there, said = (
            {turn.speaker for turn in side if turn.start <= middle < turn.end} for side in (reference, hypothesis)
        )
        assert set(each.unheard) == there - {pairs.get(name) for name in said}
        assert set(each.others) == {name for name in said if pairs.get(name) not in there}


@given(turns, protocols)
def test_there_are_none_in_a_diarization_against_itself(reference, protocol):
    assert compared(reference, reference, protocol=protocol).errors == ()


def test_rounding_is_no_error():
    assert compared((Turn(0.3, 1, "a"),), (Turn(0.1 + 0.2, 1, "x"),)).errors == ()


def test_they_say_what_is_wrong_and_touching_ones_are_one():
    reference = (Turn(0, 4, "Ada"), Turn(5, 8, "Bob"), Turn(6, 8, "Cleo"), Turn(10, 11, "Bob"))
    hypothesis = (Turn(0, 1, "x"), Turn(2, 4, "x"), Turn(4, 5, "z"), Turn(5, 7.5, "y"), Turn(10, 11, "x"))
    found = compared(reference, Diarization(hypothesis, 12.0)).errors
    assert [(each.start, each.end, str(each)) for each in found] == [
        (1, 2, "miss: Ada"),
        (4, 5, "false alarm: z"),
        (6, 7.5, "miss: Cleo"),
        (7.5, 8, "miss: Bob, Cleo"),
        (10, 11, "confusion: Bob as x"),
    ]
    too_many = (Turn(0, 1, "x"), Turn(0, 1, "y"), Turn(1, 2, "x"))
    assert [str(each) for each in compared((Turn(0, 1, "a"),), too_many).errors] == [
        "false alarm: y",
        "false alarm: x",
    ]
    two_in_a_row = (Turn(0, 1, "x"), Turn(1, 2, "x"), Turn(2, 3, "x"))
    assert next((each.start, each.end) for each in compared((Turn(5, 6, "a"),), two_in_a_row).errors) == (0, 3)


def test_who_is_missed_while_others_take_turns_is_missed_once():
    turns = (Turn(0, 1, "Ada"), Turn(1, 2, "Bob"), Turn(3, 9, "Ada"), Turn(9, 15, "Bob"))
    found = compared((*turns, Turn(0, 2, "Cleo")), turns).errors
    assert [(each.start, each.end, str(each)) for each in found] == [(0, 2, "miss: Cleo")]


def test_who_is_heard_beside_somebody_is_missed_and_confused():
    both = (Turn(0, 1, "Ada"), Turn(0, 1, "Bob"), Turn(2, 9, "Cleo"))
    (found,) = compared(both, (Turn(0, 1, "x"), Turn(2, 9, "x"))).errors
    assert (found.kinds, str(found)) == (("miss", "confusion"), "miss and confusion: Ada, Bob as x")
    assert found.counts == DerCounts(total=2, miss=1, confusion=1)


def test_it_knows_what_counts():
    sides = (Turn(1, 4, "a"),), (Turn(1, 5, "x"),)
    assert compared(*sides, [(0, 2), (3, 9)]).scored == ((0, 2), (3, 9))
    assert compared(*sides, [(0, 9)], "fair").scored == ((0, 0.75), (1.25, 3.75), (4.25, 9))

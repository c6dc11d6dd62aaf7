"""The difference from md-eval: the example of ``recipes/SCORING.md``, and that there is no other case."""

from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given

from sortformer.annotation import Turn
from sortformer.formats import rttm
from sortformer.metrics.der import der
from sortformer.metrics.protocol import FAIR, FULL
from tests.oracles import der_matrix as oracle
from tests.strategies import turn_lists

SCORING = Path(__file__).resolve().parents[2] / "recipes/SCORING.md"


def example() -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """The reference and the hypothesis of the document."""
    blocks = [block.split("```")[0] for block in SCORING.read_text(encoding="utf-8").split("```rttm\n")[1:]]
    reference, hypothesis = (rttm.parse(block)["talk"] for block in blocks)
    return reference, hypothesis


def test_the_example_is_what_the_document_says():
    reference, hypothesis = example()
    uem = [(0.0, 12.0)]
    ours = astuple(der(reference, hypothesis, uem, FAIR))
    theirs = oracle.der(reference, hypothesis, 12.0, uem, FAIR.collar_s, map_without_collar=True)
    assert ours == pytest.approx((2.5, 0, 0, 0))
    assert theirs == pytest.approx((2.5, 0, 0, 2.5))
    assert astuple(der(reference, hypothesis, uem, FULL)) == pytest.approx((6.2, 0, 0, 3))


@given(turn_lists(end_s=6, speakers="abc", max_size=6), turn_lists(end_s=6, speakers="abc", max_size=6))
def test_without_a_collar_both_count_the_same_and_with_one_ours_is_never_more(reference, hypothesis):
    uem = [(0, 6)]
    theirs = oracle.der(reference, hypothesis, 6, uem, map_without_collar=True)
    assert astuple(der(reference, hypothesis, uem, FULL)) == pytest.approx(theirs, abs=1e-6)
    theirs = oracle.der(reference, hypothesis, 6, uem, FAIR.collar_s, map_without_collar=True)
    ours = astuple(der(reference, hypothesis, uem, FAIR))
    assert ours[:3] == pytest.approx(theirs[:3], abs=1e-6)
    assert ours[3] <= theirs[3] + 1e-6

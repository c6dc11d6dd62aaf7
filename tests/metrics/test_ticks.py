"""Errors in ticks: what is scored, who speaks and what is wrong is what counting cells says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import merged
from sortformer.metrics.ticks import TickTruth, in_ticks
from tests.metrics.test_der import CELLS, SECONDS, protocols, turns, uems
from tests.oracles import der_cells as oracle


@given(turns, uems(), protocols, st.integers(0, 300))
def test_what_is_scored_and_who_speaks_is_what_the_cells_say(reference, uem, protocol, first):
    active, kept = in_ticks(reference, uem, protocol, SECONDS - first / 100, first)
    cells, names = oracle.speakers_by_cell(reference, CELLS), sorted({turn.speaker for turn in reference})
    scored = oracle.scored_cells(cells, CELLS, uem, protocol.collar_s, protocol.skip_overlap)
    assert np.flatnonzero(kept).tolist() == [cell - first for cell in scored if cell >= first]
    assert active.tolist() == [[name in said for name in names] for said in cells[first:]]


@given(turns, turns, uems(), protocols)
def test_the_errors_are_those_of_counting_cells(reference, hypothesis, uem, protocol):
    spans = {name: np.zeros((0, 2), int) for name in "abc"}
    for turn in merged(hypothesis):
        spans[turn.speaker] = np.append(spans[turn.speaker], [[round(100 * turn.start), round(100 * turn.end)]], axis=0)
    found = TickTruth.of(reference, uem, protocol, SECONDS, 0).errors([*spans.values()])
    _, *errors = oracle.der(reference, hypothesis, CELLS, uem, protocol.collar_s, protocol.skip_overlap)
    assert found == round(100 * sum(errors))

"""DER and JER: equal to counting cells over all pairings of speakers; the laws of a metric."""

import subprocess
import sys
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import ConfigError
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.der import der, jer, speaker_counts
from sortformer.metrics.protocol import FAIR, FORGIVING, FULL, PROTOCOLS, changed
from tests.oracles import der_cells as oracle
from tests.strategies import turn_lists

SECONDS = 6
CELLS = SECONDS * oracle.CELL
turns = turn_lists(end_s=SECONDS, speakers="abc", max_size=6)
protocols = st.sampled_from([FULL, FAIR, FORGIVING])


@st.composite
def uems(draw) -> list[tuple[float, float]]:
    """One to three disjoint parts."""
    borders = sorted(draw(st.lists(st.integers(0, CELLS), min_size=2, max_size=6, unique=True)))
    return [(a / 100, b / 100) for a, b in zip(borders[::2], borders[1::2], strict=False)]


@given(turns, turns, uems(), protocols)
def test_der_is_that_of_counting_cells(reference, hypothesis, uem, protocol):
    found = astuple(der(reference, hypothesis, uem, protocol))
    expected = oracle.der(reference, hypothesis, CELLS, uem, protocol.collar_s, protocol.skip_overlap)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)


@given(turns, turns, uems())
def test_jer_is_that_of_counting_cells(reference, hypothesis, uem):
    found = jer(reference, hypothesis, uem)
    expected, speakers = oracle.jers(reference, hypothesis, CELLS, uem)
    assert found.speakers == speakers
    assert any(found.errors == pytest.approx(errors, rel=1e-4, abs=1e-5) for errors in expected)


def test_a_protocol_may_be_given_by_its_name():
    sides = [Turn(0, 1, "a")], [Turn(0, 2, "b")]
    assert der(*sides, protocol="fair") == der(*sides, protocol=FAIR) != der(*sides)
    with pytest.raises(ConfigError, match="choose one of full, fair, forgiving"):
        der(*sides, protocol="strict")


@given(turns, protocols)
def test_a_diarization_against_itself_has_no_error(reference, protocol):
    assert der(reference, reference, protocol=protocol).errors == pytest.approx(0, abs=1e-9)
    assert jer(reference, reference).rate == pytest.approx(0, abs=1e-9)


@given(turns, turns, protocols, st.permutations("abc"))
def test_names_do_not_matter(reference, hypothesis, protocol, names):
    renamed = [Turn(t.start, t.end, names["abc".index(t.speaker)]) for t in hypothesis]
    uem = [(0, SECONDS)]
    found, again = (astuple(der(reference, h, uem, protocol)) for h in (hypothesis, renamed))
    assert found == pytest.approx(again, abs=1e-9)


@given(turns, turns, st.integers(1, CELLS - 1))
def test_reference_speech_adds_up_over_parts_of_a_recording(reference, hypothesis, cut):
    whole = der(reference, hypothesis, [(0, SECONDS)])
    parts = [der(reference, hypothesis, [part]) for part in ((0, cut / 100), (cut / 100, SECONDS))]
    summed = sum(parts, DerCounts())
    assert summed.total == pytest.approx(whole.total, abs=1e-6)
    assert summed.errors <= whole.errors + 1e-6  # each part may pair speakers anew


@given(turns, turns)
def test_speakers_are_counted_where_they_are_scored(reference, hypothesis):
    uem = [(0, 2), (4, 5)]
    cells = [oracle.speakers_by_cell(each, CELLS) for each in (reference, hypothesis)]
    expected = tuple(len(set().union(*each[:200], *each[400:500])) for each in cells)
    assert speaker_counts(reference, hypothesis, uem) == expected


def test_who_only_touches_what_is_scored_is_not_counted():
    reference, hypothesis = (Turn(0, 2, "a"), Turn(2, 4, "b"), Turn(4, 6, "c")), (Turn(4, 5, "x"),)
    assert speaker_counts(reference, hypothesis, [(2, 4)]) == (1, 0)


def test_the_collar_is_on_each_side():
    reference, hypothesis = [Turn(1, 3, "a")], [Turn(0.75, 3.25, "a")]
    assert der(reference, hypothesis, [(0, 4)], FAIR) == DerCounts(1.5, 0, 0, 0)
    assert der(reference, [Turn(0.7, 3.3, "a")], [(0, 4)], FAIR).false_alarm == pytest.approx(0.1)


def test_forgiving_leaves_overlap_out():
    reference = [Turn(0, 4, "a"), Turn(2, 4, "b")]
    assert der(reference, [], [(0, 4)], FULL).miss == pytest.approx(6)
    assert der(reference, [], [(0, 4)], FORGIVING).miss == pytest.approx(1.5)


def test_no_hypothesis_is_all_missed():
    counts = der([Turn(0, 2, "a")], [])
    assert counts == DerCounts(2, 2, 0, 0)
    assert counts.rate == 1
    assert jer([Turn(0, 2, "a")], []) == JerCounts(1, 1)


def test_without_reference_speech_any_error_is_a_rate_of_one():
    assert der([], [Turn(0, 2, "a")]).rate == 1
    assert der([], []).rate == 0
    assert jer([], []).rate == 0
    assert jer([], [Turn(0, 2, "a")]) == JerCounts(0, 0, false_speakers=1)
    assert jer([], [Turn(0, 2, "a")]).rate == 1
    assert jer([Turn(0, 2, "a")], [Turn(0, 2, "b")]) == JerCounts(0, 1)
    assert jer([], [Turn(0, 2, "a")], [(3, 4)]).rate == 0


def test_the_duration_is_scored_where_it_is_known():
    reference = Diarization((Turn(2, 3, "a"),), 10)
    assert der(reference, [Turn(2, 12, "b")]).false_alarm == pytest.approx(7)
    assert der(reference.turns, [Turn(2, 12, "b")]).false_alarm == pytest.approx(9)


def test_to_pair_speakers_no_turn_is_compared_with_all_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr("pyannote.core.Annotation.co_iter")  # pyannote's pairing: 225 million steps for 15,000 turns
    reference, hypothesis = [Turn(0, 2, "a"), Turn(2, 3, "b")], [Turn(0, 2.5, "x")]
    assert der(reference, hypothesis) == DerCounts(3, 0.5, 0, 0.5)
    assert jer(reference, hypothesis) == JerCounts(1.2, 2)


def test_counts_add_up_over_recordings():
    assert DerCounts(10, 1, 2, 3) + DerCounts(10, 1, 0, 1) == DerCounts(20, 2, 2, 4)
    assert (DerCounts(10, 1, 2, 3) + DerCounts()).rate == 0.6
    assert (JerCounts(1.5, 2) + JerCounts(0.5, 2, false_speakers=1)).rate == 0.5
    assert (JerCounts() + JerCounts(0, 0, false_speakers=1)).rate == 1


def test_protocols_say_what_they_mean():
    assert [str(each) for each in PROTOCOLS.values()] == [
        "full (no collar, overlap scored)",
        "fair (collar 0.25 s each side, overlap scored)",
        "forgiving (collar 0.25 s each side, overlap not scored)",
    ]


@given(
    st.sampled_from(list(PROTOCOLS.values())), st.none() | st.sampled_from([0.0, 0.25, 0.1]), st.none() | st.booleans()
)
def test_a_changed_protocol_has_what_was_asked_for_and_the_name_of_its_like(base, collar_s, skip_overlap):
    found = changed(base, collar_s, skip_overlap)
    assert found.collar_s == (base.collar_s if collar_s is None else collar_s)
    assert found.skip_overlap == (base.skip_overlap if skip_overlap is None else skip_overlap)
    assert PROTOCOLS.get(found.name, found) == found
    assert changed(found, base.collar_s, base.skip_overlap) == base


@pytest.mark.parametrize("collar_s", [-0.1, float("nan"), float("inf"), "0.25", True])
def test_a_collar_is_a_number_of_seconds(collar_s):
    with pytest.raises(ConfigError, match=r"collar.* must be a number"):
        changed(FULL, collar_s)


@pytest.mark.parametrize("module", ["metrics.der", "evaluate", "targets", "postprocess"])
def test_the_annotation_tower_imports_neither_torch_nor_pyannote(module):
    check = f"import sys, sortformer.{module}; sys.exit(bool({{'torch', 'pyannote.metrics'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0

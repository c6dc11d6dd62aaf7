"""Windows of recordings, as in manifests, are scored as if a UEM named them."""

import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.evaluate import score, truth_in
from sortformer.formats import rttm, uem
from sortformer.manifests import Entry, write


def test_windows_of_a_manifest_are_scored_where_they_lie_in_their_files(tmp_path):
    rttm.write(tmp_path / "one.rttm", Diarization((Turn(0, 4, "a"), Turn(4, 8, "b")), 10, "one"))
    rttm.write(tmp_path / "two.rttm", Diarization((Turn(1, 3, "c"),), 10, "two"))
    one = Entry("one", tmp_path / "x.wav", 2, 4, tmp_path / "one.rttm")
    two = Entry("two", tmp_path / "x.wav", 1.5, None, tmp_path / "two.rttm", tmp_path / "two.uem")
    uem.write(tmp_path / "two.uem", {"two": [(0, 2.5)]})
    write(tmp_path / "m.jsonl", [one, two])
    truth = truth_in(tmp_path / "m.jsonl")
    assert {uri: [(turn.start, turn.end) for turn in turns] for uri, turns in truth.turns.items()} == {
        "one": [(0, 4), (4, 8)],
        "two": [(1, 3)],
    }
    assert truth.uem == {"one": ((2, 6),), "two": ((1.5, 2.5),)}
    write(tmp_path / "m.jsonl", [one], overwrite=True)
    assert truth_in(tmp_path / "m.jsonl").uem == {"one": ((2, 6),)}
    uem.write(tmp_path / "given.uem", {"one": [(1, 3), (5, 9)]})
    assert truth_in(tmp_path / "m.jsonl", tmp_path / "given.uem").uem == {"one": ((2, 3), (5, 6))}


def test_a_uem_given_may_name_windows_by_their_file(tmp_path):
    rttm.write(tmp_path / "call.rttm", Diarization((Turn(0, 9, "a"),), 10, "call"))
    windows = [Entry(f"call_{start}", tmp_path / "call.wav", start, 5, tmp_path / "call.rttm") for start in (0, 5)]
    write(tmp_path / "m.jsonl", windows)
    uem.write(tmp_path / "given.uem", {"call": [(1, 7)], "other": [(0, 1)]})
    named = truth_in(tmp_path / "m.jsonl", tmp_path / "given.uem").uem
    assert named == {"call": ((1, 7),), "other": ((0, 1),), "call_0": ((1, 5),), "call_5": ((5, 7),)}
    uem.write(tmp_path / "given.uem", {"call": [(1, 7)], "call_5": [(8, 12)]}, overwrite=True)
    named = truth_in(tmp_path / "m.jsonl", tmp_path / "given.uem").uem
    assert named == {"call": ((1, 7),), "call_0": ((1, 5),), "call_5": ((8, 10),)}  # its own id comes first


@pytest.mark.parametrize(("start", "end"), [(10, 20), (0, 20), (10, 30)])
def test_a_window_has_no_collar_where_it_cuts_a_turn(tmp_path, start, end):
    truth = Diarization((Turn(0, 30, "a"),), 30, "call")
    rttm.write(tmp_path / "call.rttm", truth)
    rttm.write(tmp_path / "found.rttm", Diarization((Turn(start + 0.1, end, "x"),), 30, "call"))
    uem.write(tmp_path / "part.uem", {"call": [(start, end)]})
    write(tmp_path / "m.jsonl", [Entry("call", tmp_path / "call.wav", start, end - start, tmp_path / "call.rttm")])
    window = score(tmp_path / "m.jsonl", tmp_path / "found.rttm", protocol="fair")
    part = score(tmp_path / "call.rttm", tmp_path / "found.rttm", uem=tmp_path / "part.uem", protocol="fair")
    assert window.rows == part.rows
    assert window.der.total == end - start - 0.25 * ((start == 0) + (end == 30))


def test_a_window_after_the_last_turn_is_no_window_of_another_recording(tmp_path):
    rttm.write(tmp_path / "call.rttm", Diarization((Turn(0, 3, "a"),), 10, "call"))
    (tmp_path / "found").mkdir()
    (tmp_path / "found/call.rttm").write_text("")
    write(tmp_path / "m.jsonl", [Entry("call", tmp_path / "call.wav", 5, 5, tmp_path / "call.rttm")])
    assert score(tmp_path / "m.jsonl", tmp_path / "found").der.errors == 0


def test_a_reference_that_goes_on_after_its_audio_asks_nothing_of_the_others(tmp_path):
    rttm.write(tmp_path / "long.rttm", Diarization((Turn(0, 10.3, "a"),), 11, "long"))
    rttm.write(tmp_path / "open.rttm", Diarization((Turn(1, 3, "b"),), 4, "open"))
    (tmp_path / "both.rttm").write_text((tmp_path / "long.rttm").read_text() + (tmp_path / "open.rttm").read_text())
    long = Entry("long", tmp_path / "x.wav", 0, 10, tmp_path / "long.rttm")
    write(tmp_path / "m.jsonl", [long, Entry("open", tmp_path / "y.wav", 0, None, tmp_path / "open.rttm")])
    rows = score(tmp_path / "m.jsonl", tmp_path / "both.rttm").rows
    assert [row.region.parts for row in rows] == [((0, 10),), ((1, 3),)]


def test_turns_a_little_past_the_audio_make_no_window(tmp_path):
    rttm.write(tmp_path / "call.rttm", Diarization((Turn(0, 10.08, "a"),), 11, "call"))
    write(tmp_path / "m.jsonl", [Entry("call", tmp_path / "call.wav", 0, 10, tmp_path / "call.rttm")])
    assert score(tmp_path / "m.jsonl", tmp_path / "call.rttm").basis == "Scored: the whole recording."

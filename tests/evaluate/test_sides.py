"""References from manifests, and what a JSON file is."""

import pytest

from sortformer.annotation import Diarization
from sortformer.errors import InputError
from sortformer.evaluate import score, truth_in
from sortformer.formats import json as json_format
from sortformer.formats import rttm, seglst, uem
from sortformer.manifests import Entry, write
from tests.audio import makers
from tests.evaluate.recordings import ONE, TWO


def test_what_a_json_file_holds_says_whether_it_is_a_manifest(tmp_path):
    seglst.write(tmp_path / "segments.json", ONE)
    json_format.write(tmp_path / "result.json", ONE)
    rttm.write(tmp_path / "one.rttm", ONE)
    write(tmp_path / "manifest.json", [Entry("one", tmp_path / "one.wav", rttm=tmp_path / "one.rttm")])
    for name in ("segments", "result", "manifest"):
        assert truth_in(tmp_path / f"{name}.json").turns == {"one": ONE.turns}
    (tmp_path / "results.jsonl").write_text("".join(json_format.format(each, one_line=True) for each in (ONE, TWO)))
    assert truth_in(tmp_path / "results.jsonl").turns == {"one": ONE.turns, "two": TWO.turns}


def test_a_json_file_of_something_else_is_refused(tmp_path):
    rttm.write(tmp_path / "one.rttm", ONE)
    for content, sentence in (
        ('{"text": "hello"}', "is not a diarization: it has no schema_version"),
        ('["hello"]', "segment 1: a SegLST segment must be an object, got 'hello'"),
        ("[", "not JSON .* is this SegLST"),
    ):
        (tmp_path / "talk.json").write_text(content)
        with pytest.raises(InputError, match=f"talk.json.*{sentence}"):
            score(tmp_path / "one.rttm", tmp_path / "talk.json")


def test_a_manifest_is_a_reference_with_durations_and_scored_parts(folders, tmp_path):
    entries = [Entry(each.uri, tmp_path / "x.wav", 0, 10, folders[0] / f"{each.uri}.rttm") for each in (ONE, TWO)]
    write(tmp_path / "m.jsonl", entries)
    report = score(tmp_path / "m.jsonl", folders[1])
    assert [row.region.parts for row in report.rows] == [((0, 10),)] * 2
    assert report.basis == "Scored: the whole recording."
    rttm.write(folders[1] / "three.rttm", Diarization((), 10, "three"))
    with pytest.raises(InputError, match=r"missing in .*m\.jsonl: 'three'"):
        score(tmp_path / "m.jsonl", folders[1])
    (folders[1] / "three.rttm").unlink()
    uem.write(tmp_path / "one.uem", {"one": [(0, 4)]})
    with_uem = Entry("one", tmp_path / "x.wav", 0, 10, folders[0] / "one.rttm", tmp_path / "one.uem")
    write(tmp_path / "m.jsonl", [with_uem, entries[1]], overwrite=True)
    assert truth_in(tmp_path / "m.jsonl").uem == {"one": ((0, 4),), "two": ((0, 10),)}
    uem.write(tmp_path / "given.uem", {"one": [(0, 5)], "two": [(0, 5)]})
    given = score(tmp_path / "m.jsonl", folders[1], uem=tmp_path / "given.uem")
    assert [row.region.duration for row in given.rows] == [5, 5]


def test_a_manifest_without_what_scoring_needs_is_refused(folders, tmp_path):
    write(tmp_path / "m.jsonl", [Entry("one", tmp_path / "x.wav")])
    with pytest.raises(InputError, match="names no RTTM"):
        score(tmp_path / "m.jsonl", folders[1])
    uem.write(tmp_path / "one.uem", {"one": [(0, 4)]})
    one = Entry("one", tmp_path / "x.wav", rttm=folders[0] / "one.rttm", uem=tmp_path / "one.uem")
    two = Entry("two", tmp_path / "x.wav", rttm=folders[0] / "two.rttm")
    window = Entry("one", tmp_path / "x.wav", 2, 4, rttm=folders[0] / "one.rttm")
    for first in (one, window):
        write(tmp_path / "m.jsonl", [first, two], overwrite=True)
        with pytest.raises(InputError, match="has neither a UEM nor a duration for 'two'"):
            score(tmp_path / "m.jsonl", folders[1])


def test_where_no_duration_is_given_the_recording_is_asked(folders, tmp_path):
    audio = makers.write(tmp_path / "two.wav", makers.chirp(9, 16_000), 16_000)
    window = Entry("one", tmp_path / "x.wav", 2, 4, rttm=folders[0] / "one.rttm")
    write(tmp_path / "m.jsonl", [window, Entry("two", audio, rttm=folders[0] / "two.rttm")])
    assert truth_in(tmp_path / "m.jsonl").uem == {"one": ((2, 6),), "two": ((0, 9),)}
    fading = makers.fading_aac(tmp_path / "fading.aac")
    write(tmp_path / "m.jsonl", [window, Entry("two", fading, rttm=folders[0] / "two.rttm")], overwrite=True)
    (scored,) = truth_in(tmp_path / "m.jsonl").uem["two"]
    assert scored == (0, pytest.approx(8.1, abs=0.1))
    write(tmp_path / "m.jsonl", [Entry("late", audio, 9, rttm=folders[0] / "two.rttm")], overwrite=True)
    with pytest.raises(InputError, match=r"two\.wav ends at 9\.00 s, before its window 'late' begins"):
        truth_in(tmp_path / "m.jsonl")

"""JSON: round trips; other kinds of documents and other versions are refused."""

import json as standard
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.errors import InputError
from sortformer.formats import json, rttm
from tests.strategies import diarizations

ORIGIN = Origin("embedded", "0.1.0", {"onset": 0.5, "preset": None, "layers": [1, 2]}, TimeAxis(0.0, 0.08, 375))


@given(diarizations(grid=1000), st.sampled_from([None, ORIGIN]), st.integers(0, 10**4), st.text(min_size=1))
def test_reading_back_gives_the_same_diarization(recording, origin, confidence, name):
    turns = tuple(Turn(t.start, t.end, t.speaker + name, confidence / 10**4) for t in recording)
    original = Diarization(turns, recording.duration, name, origin)
    assert json.parse(json.format(original)) == original
    for warnings in ([], ["a is damaged", name]):
        document = json.format(original.warned(warnings))
        assert standard.loads(document)["warnings"] == warnings
        assert json.parse(document) == original.warned(warnings)


def test_the_document_has_the_schema_that_is_promised(tmp_path):
    recording = Diarization((Turn(0, 1.5, "Anna Müller", 0.91234), Turn(1, 2, "b")), 30, "my meeting", ORIGIN)
    json.write(tmp_path / "x.json", recording)
    assert standard.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {
        "schema_version": 1,
        "uri": "my meeting",
        "duration": 30.0,
        "speakers": ["Anna Müller", "b"],
        "turns": [
            {"start": 0.0, "end": 1.5, "speaker": "Anna Müller", "confidence": 0.9123},
            {"start": 1.0, "end": 2.0, "speaker": "b", "confidence": None},
        ],
        "time_axis": {"start_s": 0.0, "step_s": 0.08, "num_frames": 375},
        "model": "embedded",
        "version": "0.1.0",
        "settings": {"onset": 0.5, "preset": None, "layers": [1, 2]},
    }
    assert json.read(tmp_path / "x.json").turns == (Turn(0, 1.5, "Anna Müller", 0.9123), Turn(1, 2, "b"))
    assert recording.to_json() == json.format(recording)
    assert Diarization.from_json(tmp_path / "x.json") == json.read(tmp_path / "x.json")


def test_turns_that_round_to_nothing_are_left_out():
    document = standard.loads(json.format(Diarization((Turn(1, 1.0002, "a"),), 2)))
    assert document["turns"] == []


@given(diarizations(grid=10**6))
def test_what_is_read_is_written_as_it_was(recording):
    document = json.format(recording)
    assert json.format(json.parse(document)) == document


def test_speakers_are_those_of_the_turns_in_their_order():
    brief = Diarization((Turn(0, 0.0003, "A"), Turn(0.5, 1, "B"), Turn(0.4999, 1, "C")), 2)
    assert standard.loads(json.format(brief))["speakers"] == ["B", "C"]


@given(diarizations(grid=10**6))
def test_no_turn_ends_after_the_recording(recording):
    document = standard.loads(json.format(recording))
    assert all(turn["end"] <= recording.duration for turn in document["turns"])


@given(diarizations(grid=2000))
def test_times_are_those_of_rttm(recording):
    assert rttm.format(json.parse(json.format(recording))) == rttm.format(recording)


def test_a_turn_that_was_added_after_the_end_is_kept():
    document = standard.loads(json.format(Diarization((Turn(0, 1, "a"),), 2)))
    document["turns"].append({"start": 2.5, "end": 3, "speaker": "b", "confidence": None})
    assert json.parse(standard.dumps(document)) == Diarization((Turn(0, 1, "a"), Turn(2.5, 3, "b")), 3)


def test_a_later_key_is_ignored_and_a_later_schema_refused():
    document = standard.loads(json.format(Diarization((), 2)))
    assert json.parse(standard.dumps({**document, "new": 1})) == Diarization((), 2)
    with pytest.raises(InputError, match=r"x\.json has schema version 2, but this release reads version 1"):
        json.parse(standard.dumps({**document, "schema_version": 2}), "x.json")


@pytest.mark.parametrize(
    "change",
    [
        {"duration": "long"},
        {"duration": None},
        {"uri": 5},
        {"turns": [{"start": 0, "end": 1, "speaker": "a"}]},
        {"turns": [{"start": 1, "end": 0, "speaker": "a", "confidence": None}]},
        {"turns": [{"start": 0, "end": True, "speaker": "a", "confidence": None}]},
        {"turns": 5},
        {"time_axis": {"start_s": 0}},
        {"time_axis": {"start_s": 0, "step_s": 0.08, "num_frames": "many"}},
        {"time_axis": {"start_s": 0, "step_s": 0.08, "num_frames": 2.7}},
        {"time_axis": {"start_s": 0, "step_s": 0.08, "num_frames": math.inf}},
        {"duration": 10**400},
        {"uri": "\ud800"},
        {"settings": ["a"]},
        {"warnings": 5},
        {"warnings": [5]},
        {"warnings": "talk.wav is damaged"},
    ],
)
def test_a_wrong_value_is_refused(change):
    document = standard.loads(json.format(Diarization((), 2)))
    with pytest.raises(InputError, match=r"^x\.json is not a diarization: "):
        json.parse(standard.dumps({**document, **change}), "x.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "5", pytest.param(99_999 * "[", id="deep")])
def test_other_documents_are_refused(text):
    with pytest.raises(InputError, match=r"^x\.json: (not JSON|not a JSON object)|^x\.json is not a diarization"):
        json.parse(text, "x.json")


def test_settings_that_json_cannot_express_are_refused():
    with pytest.raises(InputError, match="settings"):
        json.format(Diarization((), 1, origin=Origin(settings={"x": float("nan")})))

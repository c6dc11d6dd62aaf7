"""SegLST: the turns or words of a recording, in the format of meeteval."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import rttm, seglst
from sortformer.words import Word
from tests.formats.test_subtitles import said
from tests.strategies import diarizations

NAMES = ['Ada "the\tchair"\nKing', "Jürgen", "会議", "\\"]


@given(diarizations(grid=1000), st.text(min_size=1))
def test_the_segments_are_the_turns_without_words(recording, name):
    turns = tuple(Turn(turn.start, turn.end, turn.speaker + name) for turn in recording)
    read = json.loads(seglst.format(Diarization(turns, recording.duration, name)))
    expected = Diarization(turns, recording.duration).merge()
    assert [Turn(each["start_time"], each["end_time"], each["speaker"]) for each in read] == list(expected)
    assert all(each["session_id"] == name and each["words"] == "" for each in read)


@given(diarizations(grid=48000), st.lists(said(), max_size=1))
def test_no_time_is_after_the_end(recording, words):
    for each in json.loads(seglst.format(recording, *words)):
        assert 0 <= each["start_time"] <= each["end_time"] <= recording.duration + 1e-9


@given(said())
def test_every_word_is_in_one_segment_of_its_speaker_and_time(words):
    left = list(words)
    before = None
    for each in json.loads(seglst.format(Diarization((), 3600), words)):
        own = [left.pop(0) for _ in each["words"].split()]
        assert " ".join(word.text for word in own) == each["words"]
        assert {word.speaker or "unknown" for word in own} == {each["speaker"]}
        assert (each["start_time"], each["end_time"]) == (own[0].start, own[-1].end)
        assert before is None or each["speaker"] != before["speaker"] or each["start_time"] >= before["end_time"] + 1
        before = each
    assert not left


def test_words_after_the_end_are_moved_into_the_recording():
    words = [Word(1.5, 2.2, "last", "Ada"), Word(2.0, 2.3, "then", "Zoe"), Word(2.5, 2.9, "late", "Bob")]
    found = json.loads(seglst.format(Diarization((), 2), words))
    assert [(each["words"], each["start_time"], each["end_time"]) for each in found] == (
        [("last", 1.5, 2.0), ("then", 1.999, 2.0), ("late", 1.999, 2.0)]
    )


def test_a_pause_of_a_second_divides_segments_and_each_lasts_until_all_of_its_words_have_ended():
    words = [Word(0, 1.5, "a", "Ada"), Word(0.5, 1, "b", "Ada"), Word(1.999, 2.5, "c", "Ada"), Word(3.5, 4, "d", "Ada")]
    segments = json.loads(seglst.format(Diarization((), 9), words[:2]))
    assert [(each["start_time"], each["end_time"], each["words"]) for each in segments] == [(0, 1.5, "a b")]
    segments = json.loads(seglst.format(Diarization((), 9), words))
    assert [(each["start_time"], each["end_time"]) for each in segments] == [(0, 2.5), (3.5, 4)]


@pytest.mark.parametrize(("start", "spoken"), [(1.001, ["a b c d"]), (1.0, ["a b c", "d"])])
def test_a_step_back_of_a_second_divides_segments(start: float, spoken: list[str]):
    words = [Word(at, at + 0.5, text, "Ada") for at, text in ((0, "a"), (1, "b"), (2, "c"), (start, "d"))]
    assert [each["words"] for each in json.loads(seglst.format(Diarization((), 9), words))] == spoken


def test_a_speech_is_one_segment_however_long():
    words = [Word(number / 2, number / 2 + 0.5, " understanding", "Ada") for number in range(60)]
    (segment,) = json.loads(seglst.format(Diarization((), 60), words))
    assert (segment["start_time"], segment["end_time"], len(segment["words"].split())) == (0, 30, 60)


def test_a_segment_is_exactly_as_meeteval_has_it(tmp_path: Path):
    seglst.write(tmp_path / "x.seglst.json", Diarization((Turn(0.5, 1.25, "Jürgen"),), 10, "S05"))
    assert (tmp_path / "x.seglst.json").read_text(encoding="ascii") == (
        '[\n {\n  "session_id": "S05",\n  "speaker": "J\\u00fcrgen",\n  "start_time": 0.5,\n  "end_time": 1.25,\n'
        '  "words": ""\n }\n]\n'
    )


@given(diarizations(grid=1000), st.text(min_size=1))
def test_what_was_written_is_read_again(recording, name):
    turns = tuple(Turn(turn.start, turn.end, turn.speaker + name) for turn in recording)
    written = Diarization(turns, recording.duration, " S 05 ").merge()
    expected = {"S_05": written.turns} if turns else {}
    assert seglst.parse(seglst.format(written)) == expected


def test_segments_are_read_as_chime_has_them():
    text = """[
      {"session_id": "S02", "speaker": "P06", "start_time": "12.50", "end_time": "13.75", "words": "well", "ref": 1},
      {"session_id": "S02", "speaker": "P05", "start_time": "11", "end_time": "12.6", "words": "so", "ref": 2},
      {"session_id": "S09", "speaker": "P05", "start_time": 4, "end_time": 4.0, "words": "", "ref": 3}
    ]"""
    assert seglst.parse(text) == {"S02": (Turn(11, 12.6, "P05"), Turn(12.5, 13.75, "P06")), "S09": ()}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"session_id": 5}, "session_id must be text, got 5"),
        ({"speaker": None}, "speaker must be text, got None"),
        ({"start_time": "soon"}, "start_time must be seconds, got 'soon'"),
        ({"start_time": "nan"}, "start_time must be seconds, got 'nan'"),
        ({"start_time": -1}, "0 <= start_time <= end_time <= 1e.09 is required, got -1 and 2"),
        ({"end_time": 0.5}, "0 <= start_time <= end_time <= 1e.09 is required, got 1 and 0.5"),
        ({"end_time": 2e9}, "0 <= start_time <= end_time <= 1e.09 is required, got 1 and 2e.09"),
        ({"end_time": True}, "end_time must be seconds, got True"),
    ],
)
def test_what_is_no_segment_is_refused_with_its_place(changed, sentence):
    good = {"session_id": "a", "speaker": "b", "start_time": 1, "end_time": 2}
    with pytest.raises(InputError, match=f"x.json, segment 2: {sentence}"):
        seglst.parse(json.dumps([good, good | changed]), "x.json")
    for key in good:
        with pytest.raises(InputError, match=f"x.json, segment 1: a SegLST segment needs '{key}', got"):
            seglst.parse(json.dumps([{other: value for other, value in good.items() if other != key}]), "x.json")


@pytest.mark.parametrize("text", ["{}", "3", "null"])
def test_what_is_no_list_is_no_seglst(text):
    with pytest.raises(InputError, match=r"x\.json: SegLST must be a list, got"):
        seglst.parse(text, "x.json")


def test_where_nobody_speaks_the_list_is_empty():
    assert json.loads(seglst.format(Diarization((), 10))) == []


def test_what_is_no_word_with_its_speaker_is_refused():
    with pytest.raises(InputError, match="as assign_speakers returns them"):
        seglst.format(Diarization((), 10), [(0.0, 1.0, "x")])  # pyright: ignore[reportArgumentType]


@pytest.mark.oracle
def test_meeteval_reads_it_and_makes_the_same_rttm_of_it(tmp_path: Path):
    meeteval = pytest.importorskip("meeteval", reason="meeteval is absent")
    turns = [Turn(0.5, 1.25, "Ada"), Turn(1, 2.001, "Jürgen"), Turn(3, 4, "Ada")]
    recording = Diarization(tuple(turns), 10, "S05")
    seglst.write(tmp_path / "turns.seglst.json", recording)
    read = meeteval.io.load(tmp_path / "turns.seglst.json")
    assert rttm.parse(meeteval.io.RTTM.new(read).dumps()) == rttm.parse(rttm.format(recording))

    named = Diarization(tuple(Turn(number, number + 1, name) for number, name in enumerate(NAMES)), 4, "S 05")
    words = [Word(turn.start, turn.end, "yes", turn.speaker) for turn in named] + [Word(3.9, 3.9, "no", None)]
    seglst.write(tmp_path / "words.seglst.json", named, words)
    read = meeteval.io.load(tmp_path / "words.seglst.json")
    assert [(each["session_id"], each["speaker"]) for each in read] == [("S 05", name) for name in [*NAMES, "unknown"]]
    errors = meeteval.wer.tcpwer(read, read, collar=5)["S 05"]
    assert (errors.errors, errors.length) == (0, 5)

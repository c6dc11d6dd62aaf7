"""STM: the turns or words of a recording, one line per segment."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import rttm, seglst, stm
from sortformer.words import Word
from tests.formats.test_subtitles import said
from tests.strategies import diarizations


@given(diarizations(grid=1000), st.text(st.characters(categories=("L", "N"))), st.sampled_from(["S 05", "#42 guest"]))
def test_what_was_written_is_read_again_as_rttm_would_be(recording, name, uri):
    turns = tuple(Turn(turn.start, turn.end, f"{turn.speaker} {name}") for turn in recording)
    written = Diarization(turns, recording.duration, uri)
    assert stm.parse(stm.format(written)) == rttm.parse(rttm.format(written))


def test_an_id_that_would_make_its_lines_comments_is_refused():
    with pytest.raises(InputError, match="';;talk' would be a comment: give the recording another id"):
        stm.format(Diarization((Turn(0, 1, "a"),), 2, ";;talk"))


@given(said())
def test_the_segments_are_those_of_seglst_in_order_of_time(words):
    recording = Diarization((), 3600, "S05")
    segments = json.loads(seglst.format(recording, words))
    expected = sorted((each["start_time"], each["end_time"], each["speaker"], each["words"]) for each in segments)
    read = [line.split(maxsplit=5) for line in stm.format(recording, words).split("\n")[:-1]]
    assert [(float(start), float(end), who, what) for _, _, who, start, end, what in read] == expected


def test_a_file_is_exactly_as_sclite_wants_it(tmp_path: Path):
    recording = Diarization((Turn(0, 1, "the chair"), Turn(0.5, 2, "Jürgen")), 2, "my talk")
    stm.write(tmp_path / "x.stm", recording)
    assert (tmp_path / "x.stm").read_text(encoding="utf-8") == (
        "my_talk 1 the_chair 0.000 1.000\nmy_talk 1 Jürgen 0.500 2.000\n"
    )
    words = [Word(0, 0.4, " good", "the chair"), Word(0.4, 1, " morning", "the chair"), Word(1, 2, " yes", "Jürgen")]
    stm.write(tmp_path / "x.stm", recording, words, overwrite=True)
    assert (tmp_path / "x.stm").read_text(encoding="utf-8") == (
        "my_talk 1 the_chair 0.000 1.000 good morning\nmy_talk 1 Jürgen 1.000 2.000 yes\n"
    )


def test_segments_are_read_as_corpora_have_them():
    text = (
        ";; from a corpus\n"
        "talk 1 S1 17.82 28.81 <o,f0,female> so this is\n"
        "talk A S2 2 3.5 yes\n"
        "talk 1 inter_segment_gap 0 17.82 <o,,unknown>\n"
        "talk 1 S1 40 50 <o,f0,female> IGNORE_TIME_SEGMENT_IN_SCORING\n"
        "other 1 S1 4 4 <o,f0,female>\n"
    )
    assert stm.parse(text) == {"talk": (Turn(2, 3.5, "S2"), Turn(17.82, 28.81, "S1")), "other": ()}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("talk 1 S1 2", "an STM segment needs recording, channel, speaker, start, end and words, got 'talk 1 S1 2'"),
        ("SPEAKER talk 1 0 2 <NA> <NA> a <NA> <NA>", "an STM segment needs"),
        ("talk 1 S1 soon 3 yes", "the start must be in"),
        ("talk 1 S1 2 -3 yes", "the end must be in"),
        ("talk 1 S1 3 2 yes", "the end, 2 s, is before the start, 3 s"),
    ],
)
def test_what_is_no_segment_is_refused_with_its_place(line, sentence):
    with pytest.raises(InputError, match=f"x.stm, line 2: {sentence}"):
        stm.parse(f";; x\n{line}\n", "x.stm")


def test_two_names_that_stm_cannot_tell_apart_are_refused():
    with pytest.raises(InputError, match="which STM cannot express"):
        stm.format(Diarization((Turn(0, 1, "a b"), Turn(1, 2, "a\tb")), 2))


@pytest.mark.parametrize("name", ["inter_segment_gap", "inter segment gap"])
def test_a_speaker_named_like_a_gap_is_refused(name):
    with pytest.raises(InputError, match="a speaker of talk is called inter_segment_gap, which is nobody in STM"):
        stm.format(Diarization((Turn(0, 1, name),), 2, "talk"))


@pytest.mark.oracle
def test_meeteval_reads_it_as_it_reads_seglst(tmp_path: Path):
    meeteval = pytest.importorskip("meeteval", reason="meeteval is absent")
    recording = Diarization((Turn(0.5, 1.25, "Ada"), Turn(1, 2.001, "Jürgen"), Turn(3, 4, "Ada")), 10, "S05")
    words = [Word(turn.start, turn.end, f"yes {number}", turn.speaker) for number, turn in enumerate(recording)]
    for given_words in (None, words):
        stm.write(tmp_path / "x.stm", recording, given_words, overwrite=True)
        seglst.write(tmp_path / "x.seglst.json", recording, given_words, overwrite=True)
        read = meeteval.io.load(tmp_path / "x.stm").to_seglst()
        assert [{key: each[key] for key in ("session_id", "speaker", "words")} for each in read] == [
            {key: each[key] for key in ("session_id", "speaker", "words")}
            for each in meeteval.io.load(tmp_path / "x.seglst.json")
        ]

"""CSV: a row per turn or passage."""

import csv as stdlib_csv
import io
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.formats import csv, seglst
from sortformer.words import Word
from tests.formats.test_subtitles import said
from tests.strategies import diarizations


def rows(content: str) -> list[dict[str, str]]:
    return list(stdlib_csv.DictReader(io.StringIO(content, newline="")))


@given(diarizations(grid=1000), st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1))
def test_the_rows_are_the_turns_whatever_their_names(recording: Diarization, name: str):
    turns = tuple(Turn(turn.start, turn.end, turn.speaker + name) for turn in recording)
    found = rows(csv.format(Diarization(turns, recording.duration, name)))
    expected = Diarization(turns, recording.duration).merge()
    assert [Turn(float(each["start"]), float(each["end"]), each["speaker"]) for each in found] == list(expected)
    assert all((each["recording"], each["confidence"], each["words"]) == (name, "", "") for each in found)


@given(diarizations(grid=48000), said())
def test_with_words_the_rows_are_the_segments_of_seglst(recording: Diarization, words: list[Word]):
    found = rows(csv.format(recording, words))
    expected = json.loads(seglst.format(recording, words))
    assert [(float(each["start"]), float(each["end"]), each["speaker"], each["words"]) for each in found] == [
        (each["start_time"], each["end_time"], each["speaker"], each["words"]) for each in expected
    ]


def test_a_table_is_exactly_as_programs_want_it(tmp_path: Path):
    turns = (Turn(0.5, 1.25, 'Jürgen, "the\nchair"', 0.87654321), Turn(1, 3723.0004, "Ada"))
    csv.write(tmp_path / "x.csv", Diarization(turns, 4000, "a b"))
    assert (tmp_path / "x.csv").read_bytes().decode("utf-8") == (
        "recording,start,end,speaker,confidence,words\n"
        'a b,0.500,1.250,"Jürgen, ""the\nchair""",0.8765,\n'
        "a b,1.000,3723.000,Ada,,\n"
    )
    csv.write(tmp_path / "x.csv", Diarization(turns, 4000, "x"), [Word(0.5, 1, "Well,", "Ada")], overwrite=True)
    assert (tmp_path / "x.csv").read_text() == csv.HEADER + 'x,0.500,1.000,Ada,,"Well,"\n'


def test_spreadsheets_that_separate_at_semicolons_and_tabs_split_no_text():
    written = csv.format(Diarization((), 9, "x"), [Word(0, 1, "Well; no", "Ada"), Word(4, 5, "yes", "Bob\tKing")])
    assert written == csv.HEADER + 'x,0.000,1.000,Ada,,"Well; no"\nx,4.000,5.000,"Bob\tKing",,yes\n'


def test_where_nobody_speaks_there_is_the_header():
    assert csv.format(Diarization((), 10)) == csv.HEADER

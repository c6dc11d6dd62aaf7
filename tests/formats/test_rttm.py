"""RTTM: round trips, the rules of writing, and errors with line numbers."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import ctm, eaf, rttm, subtitles, textgrid
from tests.strategies import diarizations

DATA = Path(__file__).resolve().parents[2] / "../shared/data"


@given(diarizations(grid=1000))
def test_reading_back_gives_the_merged_turns(recording):
    assert rttm.parse(rttm.format(recording)) == ({"audio": recording.merge().turns} if recording.turns else {})


@given(diarizations(grid=48000), st.floats(0, 1))
def test_every_line_obeys_the_rules(recording, confidence):
    turns = tuple(Turn(t.start, t.end, t.speaker, confidence) for t in recording)
    text = rttm.format(Diarization(turns, recording.duration, "meeting"))
    last_end = {}
    for line in text.splitlines():
        pattern = r"SPEAKER meeting 1 (\d+)\.(\d{3}) (\d+)\.(\d{3}) <NA> <NA> ([a-d]) [01]\.\d{3} <NA>"
        found = re.fullmatch(pattern, line)
        assert found
        start = int(found[1] + found[2])
        end = start + int(found[3] + found[4])
        assert 0 <= start < end <= recording.duration * 1000 + 1e-6
        assert start > last_end.get(found[5], -1)
        last_end[found[5]] = end


@given(st.lists(diarizations(), min_size=1, max_size=3))
def test_lines_are_sorted_by_file_onset_end_and_speaker(recordings):
    named = [Diarization(r.turns, r.duration, uri) for r, uri in zip(recordings, "zxy", strict=False)]
    rows = []
    for line in rttm.format(*named).splitlines():
        fields = line.split()
        start, length = int(fields[3].replace(".", "")), int(fields[4].replace(".", ""))
        rows.append((fields[1], start, start + length, fields[7]))
    assert rows == sorted(rows)


def test_a_line_is_exactly_as_nist_wants_it():
    recording = Diarization((Turn(1.5, 2.25, "anna", 0.98765),), 10, "meeting")
    assert rttm.format(recording) == "SPEAKER meeting 1 1.500 0.750 <NA> <NA> anna 0.988 <NA>\n"
    assert recording.to_rttm() == rttm.format(recording)


def test_nine_fields_other_types_comments_blank_lines_and_zero_lengths_are_read():
    text = (
        ";; a comment\n\n# another\n ;a third\nSPKR-INFO m 1 <NA> <NA> <NA> unknown anna <NA> <NA>\r\n"
        "NON-SPEECH m 1 0.0 1.0 <NA> noise <NA> <NA> <NA>\n"
        "SPEAKER m 1 3.1 0.2 <NA> <NA> anna 0.5\n"
        "SPEAKER m 1 1.1 2.2 <NA> <NA> bert <NA> <NA>\n"
        "SPEAKER n 1 1 0 <NA> <NA> anna <NA> <NA>"
    )
    assert rttm.parse(text) == {"m": (Turn(1.1, 3.3, "bert"), Turn(3.1, 3.3, "anna", 0.5)), "n": ()}


def test_touching_turns_are_joined_after_rounding_and_empty_ones_dropped():
    turns = (Turn(0, 1.0001, "a"), Turn(1.0003, 2, "a"), Turn(3, 3.0002, "a"), Turn(4, 4.5, "a"))
    text = rttm.format(Diarization(turns, 4.2))
    assert [line.split()[3:5] for line in text.splitlines()] == [["0.000", "2.000"], ["4.000", "0.200"]]


def test_no_speech_is_an_empty_file():
    assert rttm.format(Diarization((), 10)) == ""
    assert rttm.parse("") == {}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("SPEAKER m 1 0 1 <NA> <NA> anna", "9 or 10 fields, this one has 8"),
        (
            "SPEAKER m 1 0 1 <NA> <NA> anna maria <NA> <NA>",
            "9 or 10 fields, this one has 11; write white space in names as _",
        ),
        ("SPEAKER m 1 3,0 1 <NA> <NA> anna <NA> <NA>", "got '3,0': write a decimal point, not a comma"),
        ("speaker m 1 0 1 <NA> <NA> anna <NA> <NA>", "no line type 'speaker'; did you mean SPEAKER?"),
        ("lexeme m 1 0 1 hello <NA> anna <NA> <NA>", "no line type 'lexeme'; did you mean LEXEME?"),
        ("SPEAKER", "this one has 1"),
        (
            "SPEAKER m 1 -0.5 1 <NA> <NA> anna <NA> <NA>",
            "onset must be in [0, 1e+09] s, got '-0.5'",
        ),
        ("SPEAKER m 1 x 1 <NA> <NA> anna <NA> <NA>", "onset must be"),
        ("SPEAKER m 1 0 nan <NA> <NA> anna <NA> <NA>", "duration must be"),
        ("SPEAKER m 1 0 -1 <NA> <NA> anna <NA> <NA>", "duration must be"),
        ("SPEAKER m 1 0 1 <NA> <NA> anna high <NA>", "confidence must be a number or <NA>"),
        (
            "SPEAKER m 1 1e308 1e308 <NA> <NA> anna <NA> <NA>",
            "onset must be in [0, 1e+09] s, got '1e308'",
        ),
        ("0.0 1.0 anna", "RTTM lines begin with SPEAKER, not '0.0'; other formats end in .TextGrid"),
    ],
)
def test_a_broken_line_is_refused_with_file_and_line(tmp_path, line, reason):
    path = tmp_path / "meeting.rttm"
    path.write_text(f";; header\n{line}\n")
    with pytest.raises(InputError, match=re.escape(reason)) as caught:
        rttm.read(path)
    assert str(caught.value).startswith(f"{path}, line 2: ")


SPACED = pytest.mark.parametrize("name", ["two words", "a\tb", "new\nline", "no\u00a0break"])


@SPACED
def test_white_space_in_a_name_becomes_an_underscore(name):
    written = "_".join(name.split())
    found = rttm.parse(rttm.format(Diarization((Turn(0, 1, name),), 1, name)))
    assert found == {written: (Turn(0, 1, written),)}


def test_two_speakers_of_one_name_are_refused():
    with pytest.raises(InputError, match="two speakers of x have the same name except for white space"):
        rttm.format(Diarization((Turn(0, 1, "the chair"), Turn(2, 3, "the_chair")), 4, "x"))


def test_two_recordings_of_one_name_are_refused():
    for other in ("my talk", "my_talk"):
        with pytest.raises(InputError, match="same id"):
            rttm.format(Diarization((), 1, "my talk"), Diarization((), 2, other))


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        rttm.read(tmp_path / "absent.rttm")
    with pytest.raises(InputError, match="cannot read"):
        rttm.read(tmp_path)
    (tmp_path / "audio.rttm").write_bytes(b"RIFF\xff\xfe\x00")
    with pytest.raises(InputError, match=r"not a text file in UTF-8 \(byte 4 is not valid\); if it is text, save"):
        rttm.read(tmp_path / "audio.rttm")
    with pytest.raises(InputError, match=r"audio.WAV is a recording, but a text file is needed"):
        rttm.read((tmp_path / "audio.rttm").rename(tmp_path / "audio.WAV"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_says_the_encoding(tmp_path, encoding):
    text = "SPEAKER réunion 1 0.000 1.000 <NA> <NA> Zoë <NA> <NA>\r\n"
    (tmp_path / "x.rttm").write_bytes(text.encode(encoding))
    assert rttm.read(tmp_path / "x.rttm") == {"réunion": (Turn(0, 1, "Zoë"),)}
    (tmp_path / "x.rttm").write_bytes("x".encode("utf-16") + b"x")
    with pytest.raises(InputError, match="not a text file in UTF-16"):
        rttm.read(tmp_path / "x.rttm")


def test_names_in_any_script_survive(tmp_path):
    recording = Diarization((Turn(0, 1, "Zoë_李"),), 1, "réunion")
    rttm.write(tmp_path / "réunion.rttm", recording)
    assert rttm.read(tmp_path / "réunion.rttm") == {"réunion": recording.turns}


@pytest.mark.data
def test_whole_corpora_are_read():
    folder = DATA / "turns"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/turns")
    paths = sorted(folder.glob("*/[dt]*/*.rttm"))
    assert paths
    for path in paths[::10]:
        for uri, turns in rttm.read(path).items():
            recording = Diarization(turns, max(t.end for t in turns), uri)
            assert rttm.parse(recording.to_rttm())[uri] == recording.merge().turns


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (rttm.parse, "{}"),
        (rttm.parse, "SPEAKER a 1 0 {} <NA> <NA> ada <NA>"),
        (rttm.parse, "SPEAKER a 1 0 1 <NA> <NA> ada {}"),
        (ctm.parse, "{}"),
        (subtitles.parse, "1 --> {}"),
        (textgrid.parse, '"ooTextFile" "TextGrid" 0 1 <exists> 1 {}'),
        (eaf.parse, "<_{}/>"),
    ],
)
def test_a_line_as_long_as_a_file_is_not_shown_whole(parse, text):
    """As with JSON given instead of RTTM."""
    with pytest.raises(InputError, match=r"\.\.\.") as caught:
        parse(text.format("9" * 9999))
    assert len(str(caught.value)) < 200

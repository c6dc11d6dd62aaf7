"""Audacity labels: one line per turn."""

from pathlib import Path

import pytest
from hypothesis import given

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import audacity
from tests.formats.test_textgrid import in_one_line, names
from tests.strategies import diarizations


@given(diarizations(grid=1000), names)
def test_the_labels_are_the_turns(recording, names):
    turns = tuple(Turn(turn.start, turn.end, names["abcd".index(turn.speaker)]) for turn in recording)
    original = Diarization(turns, recording.duration)
    rows = [line.split("\t") for line in audacity.format(original).split("\n")[:-1]]
    expected = [Turn(turn.start, turn.end, in_one_line(turn.speaker)) for turn in original.merge()]
    assert [Turn(float(start), float(end), name) for start, end, name in rows] == sorted(expected)
    assert list(audacity.parse(audacity.format(original))) == sorted(expected)


@given(diarizations(grid=48000))
def test_no_label_ends_after_the_recording(recording):
    for line in audacity.format(recording).splitlines():
        start, end, _ = line.split("\t")
        assert 0 <= float(start) < float(end) <= recording.duration + 1e-9


def test_a_label_is_exactly_as_audacity_wants_it(tmp_path: Path):
    turns = (Turn(0.5, 1.25, 'Jürgen\t"the\nchair"'), Turn(1, 3723.0004, "Ada"))
    audacity.write(tmp_path / "x.labels.txt", Diarization(turns, 4000))
    assert (tmp_path / "x.labels.txt").read_bytes().decode("utf-8") == (
        '0.500\t1.250\tJürgen "the chair"\n1.000\t3723.000\tAda\n'
    )


def test_where_nobody_speaks_there_are_no_labels():
    assert audacity.format(Diarization((), 10)) == ""


def test_labels_that_were_corrected_in_audacity_are_read(tmp_path: Path):
    corrected = "1.000000\t2.500000\tAda  King\r\n\\\t100.0\t3000.0\r\n0.5\t1.25\tBob\r\n3.000000\t3.000000\tcough\r\n"
    (tmp_path / "x.labels.txt").write_bytes(corrected.encode())
    assert audacity.read(tmp_path / "x.labels.txt") == (Turn(0.5, 1.25, "Bob"), Turn(1, 2.5, "Ada King"))
    assert audacity.parse("") == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1.0 2.0 Ada", "needs start, end and speaker, separated by tabs, got '1.0 2.0 Ada'"),
        ("1\t2", "the label has no text: write the name of the speaker"),
        ("1\t2\t ", "the label has no text: write the name of the speaker"),
        ("2\t1\tAda", "the end, 1 s, is before the start, 2 s"),
        ("1,5\t2\tAda", "the start must be in .* got '1,5': write a decimal point, not a comma"),
    ],
)
def test_what_is_no_label_is_refused_with_its_line(row: str, message: str):
    with pytest.raises(InputError, match=f"^x.labels.txt, line 2: .*{message}"):
        audacity.parse(f"0\t1\tAda\n{row}\n", "x.labels.txt")

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


def test_two_names_that_are_one_in_a_line_are_refused():
    with pytest.raises(InputError, match="the same name except for white space, which an Audacity label cannot"):
        audacity.format(Diarization((Turn(0, 1, "Ada King"), Turn(1, 2, "Ada\tKing")), 2))

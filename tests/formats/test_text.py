"""Plain text: formatted times, aligned columns."""

import pytest

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.formats import text
from sortformer.words import Word


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00:00.00"), (59.999, "0:01:00.00"), (3723.456, "1:02:03.46"), (360000, "100:00:00.00")],
)
def test_a_clock_carries_over(seconds, shown):
    assert text.clock(seconds) == shown


def test_the_whole_page(tmp_path):
    turns = (Turn(0, 2, "Anna"), Turn(1, 3, "Anna"), Turn(2.5, 5, "李明月"))
    recording = Diarization(turns, 10, "meeting")
    text.write(tmp_path / "x.txt", recording)
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == recording.to_text()
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == (
        "meeting  0:00:10.00  2 speakers\n"
        "  Anna    0:00:03.00   30.0 %\n"
        "  李明月  0:00:02.50   25.0 %\n"
        "\n"
        "0:00:00.00 - 0:00:03.00  Anna\n"
        "0:00:02.50 - 0:00:05.00  李明月\n"
    )


def test_a_terminal_is_given_no_orders():
    assert text.format(Diarization((), 0, "a\x1b[2Jb")) == "a [2Jb  0:00:00.00  nobody speaks\n"


def test_silence_says_so():
    assert text.format(Diarization((), 0)) == "audio  0:00:00.00  nobody speaks\n"


def test_of_a_window_the_shares_are_those_of_the_window():
    origin = Origin(time_axis=TimeAxis(0.0, 0.08, 125))
    window = Diarization((Turn(0.5, 8.73, "Anna"),), 10, "call", origin).shift(10)
    assert text.format(window) == (
        "call  0:00:10.00 - 0:00:20.00  1 speaker\n  Anna  0:00:08.23   82.3 %\n\n0:00:10.50 - 0:00:18.73  Anna\n"
    )
    odd = Diarization((Turn(0, 5, "Anna"),), 10, "call", Origin(time_axis=TimeAxis(10.0, 0.08, 125)))
    assert " 50.0 %" in text.format(odd)


def test_what_was_said_lasts_until_the_last_of_its_words_has_ended():
    words = [Word(0.5, 2.0, "hello", "Ada"), Word(0.6, 1.0, "Bob", "Ada")]
    shown = text.format(Diarization((Turn(0, 2, "Ada"),), 2), words)
    assert shown.splitlines()[-1] == "0:00:00.50 - 0:00:02.00  Ada: hello Bob"


def test_a_name_takes_one_line():
    text = Diarization((Turn(0, 1, "a\nb"),), 2.0, "two\nlines").to_text()
    assert text.splitlines()[0].startswith("two lines  ")
    assert text.splitlines()[-1] == "0:00:00.00 - 0:00:01.00  a b"

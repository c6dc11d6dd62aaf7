"""TextGrid: a tier per speaker, whose intervals cover the recording, as in Praat."""

import re
import struct
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import textgrid
from tests.oracles.textgrid_lines import tiers
from tests.strategies import diarizations

NAMES = ['Ada "the chair"', "Jürgen", "会議", "intervals [1]:", "\\", "!", '"']


def in_one_line(name: str) -> str:
    return " ".join("".join(" " if unicodedata.category(letter) == "Cc" else letter for letter in name).split()) or "_"


names = st.lists(st.sampled_from(NAMES) | st.text(min_size=1), min_size=4, max_size=4, unique_by=in_one_line)
BROKEN = Diarization((Turn(0.5, 1.25, 'Ada\n"the\tchair"'), Turn(1, 2.5004, "Jürgen")), 2.500375)


@given(diarizations(grid=1000), names)
def test_the_intervals_with_a_text_are_the_turns(recording, names):
    turns = tuple(Turn(turn.start, turn.end, names["abcd".index(turn.speaker)]) for turn in recording)
    original = Diarization(turns, recording.duration)
    read = tiers(textgrid.format(original))
    expected = [(turn.start, turn.end, in_one_line(turn.speaker)) for turn in original.merge()]
    assert sorted((start, end, name) for name, parts in read for start, end, text in parts if text) == sorted(expected)
    assert all(text in ("", name) for name, parts in read for _, _, text in parts)


@given(diarizations(grid=48000))
def test_the_intervals_of_a_tier_fill_the_recording(recording):
    read = tiers(textgrid.format(recording))
    assert [name for name, _ in read] == list(recording.speakers or ("speaker_0",))
    for _, parts in read:
        assert (parts[0][0], parts[-1][1]) == (0, recording.duration)
        assert all(start < end for start, end, _ in parts)
        assert all(before[1] == after[0] for before, after in pairwise(parts))


def test_a_grid_is_exactly_as_praat_wants_it(tmp_path: Path):
    textgrid.write(tmp_path / "x.TextGrid", BROKEN)
    head, first, second = re.split(r"    item \[\d\]:\n", (tmp_path / "x.TextGrid").read_text(encoding="utf-8"))
    assert head == (
        'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 2.500375\ntiers? <exists>\nsize = 2\n'
        "item []:\n"
    )
    assert 'name = "Ada ""the chair"""\n' in first
    assert first.endswith(
        '        intervals [3]:\n            xmin = 1.25\n            xmax = 2.500375\n            text = ""\n'
    )
    assert second.endswith(
        '        intervals [2]:\n            xmin = 1\n            xmax = 2.500375\n            text = "Jürgen"\n'
    )


def by_praat(path: Path) -> list[tuple[str, float, float, str]]:
    parselmouth = pytest.importorskip("parselmouth", reason="praat-parselmouth is absent")
    from parselmouth.praat import call

    grid = parselmouth.read(str(path))
    return [
        (
            call(grid, "Get tier name", tier),
            call(grid, "Get start time of interval", tier, number),
            call(grid, "Get end time of interval", tier, number),
            call(grid, "Get label of interval", tier, number),
        )
        for tier in range(1, call(grid, "Get number of tiers") + 1)
        for number in range(1, call(grid, "Get number of intervals", tier) + 1)
    ]


def by_praatio(path: Path) -> list[tuple[str, float, float, str]]:
    package = pytest.importorskip("praatio.textgrid", reason="praatio is absent")
    grid = package.openTextgrid(str(path), includeEmptyIntervals=True)
    return [(tier.name, *entry) for tier in grid.tiers for entry in tier.entries]


@pytest.mark.oracle
@pytest.mark.parametrize("reader", [by_praat, by_praatio])
@pytest.mark.parametrize("recording", [BROKEN, Diarization((), 2.5), Diarization((Turn(0, 1e-5, "a"),), 1e-5)])
def test_other_readers_find_the_same(
    tmp_path: Path, reader: Callable[[Path], list[tuple[str, float, float, str]]], recording: Diarization
):
    textgrid.write(tmp_path / "x.TextGrid", recording)
    expected = [(name, *part) for name, parts in tiers(textgrid.format(recording)) for part in parts]
    assert reader(tmp_path / "x.TextGrid") == expected


SHORT = """File type = "ooTextFile short"
"TextGrid"

0
2.5
<exists>
2
"IntervalTier"
"Ada ""K\"""
0
2.5
2
0
1
" "
1
2.5
"a
b"
"TextTier"
"bell"
0
2.5
1
1.5
"dong"
"""


@given(diarizations(grid=1000), names)
def test_reading_back_gives_the_recording_with_its_length_and_merged_turns(recording, names):
    turns = tuple(Turn(turn.start, turn.end, in_one_line(names["abcd".index(turn.speaker)])) for turn in recording)
    original = Diarization(turns, recording.duration).merge()
    assert textgrid.parse(textgrid.format(original)) == original


def test_the_short_format_comments_and_points_are_read():
    assert textgrid.parse(SHORT) == Diarization((Turn(1, 2.5, 'Ada "K"'),), 2.5)
    remarked = SHORT.replace("\n0\n2.5\n<exists>", "\n! 1 comment\nxmin = 0 seconds xmax = 2.5 <exists>")
    assert textgrid.parse(remarked) == textgrid.parse(SHORT)
    assert textgrid.parse(SHORT.replace('1\n1.5\n"dong"', "0")) == textgrid.parse(SHORT)
    assert textgrid.parse(SHORT[: SHORT.index("<")] + "<absent>") == Diarization((), 2.5)


def test_a_turn_after_the_end_of_the_grid_is_whole():
    assert textgrid.parse(SHORT.replace("\n2.5\n<", "\n2\n<")).duration == 2.5


def test_a_binary_grid_is_refused_with_what_to_do(tmp_path: Path):
    (tmp_path / "x.TextGrid").write_bytes(b"ooBinaryFile\x08TextGrid" + struct.pack(">dd", 0, 7.123456))
    with pytest.raises(InputError, match=r"x.TextGrid is a binary TextGrid: save it as a text file in Praat$"):
        textgrid.read(tmp_path / "x.TextGrid")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_encoding_of_praat_is_read(tmp_path: Path, encoding: str):
    (tmp_path / "x.TextGrid").write_text(SHORT.replace("Ada", "会議"), encoding=encoding, newline="\r\n")
    assert textgrid.read(tmp_path / "x.TextGrid") == Diarization((Turn(1, 2.5, '会議 "K"'),), 2.5, "x")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (SHORT, "SPEAKER m 1 0 1 <NA>", "line 1: a TextGrid must begin with"),
        (SHORT, "", "line 1: the TextGrid is cut off here"),
        ("ooTextFile short", "ooBinaryFile", 'line 1: a TextGrid must begin with "ooTextFile" and "TextGrid"'),
        ('"TextGrid"', '"PitchTier"', "line 2: a TextGrid must begin"),
        ('\n"dong"\n', "", "line 25: the TextGrid is cut off here"),
        ('"dong"', '"dong', "line 26: a string that begins here has no end"),
        ('\n1\n2.5\n"a', '\n3\n2.5\n"a', "line 18: an interval needs 0 <= start < end in seconds, got 3 to 2.5"),
        *(('"Ada ""K"""', blank, "line 18: the tier has no name") for blank in ('""', '"  "')),
        ('" "', "5", "line 15: a string in quotes is needed here, got '5'"),
        ("\n2\n0\n1\n", "\n1.5\n0\n1\n", "line 12: a whole number is needed here, got 1.5"),
        ("1.5", '"1.5"', "line 25: a number is needed here, got '\"1.5\"'"),
        ("1.5", "1e999", "line 25: a number is needed here, got '1e999'"),
    ],
)
def test_a_broken_grid_is_refused_with_its_place(before: str, after: str, reason: str):
    assert before in SHORT
    with pytest.raises(InputError, match=re.escape(f"x.TextGrid, {reason}")):
        textgrid.parse(SHORT.replace(before, after, 1), "x.TextGrid")


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["text", "short text"])
@pytest.mark.parametrize("name", ["Ada", "会議"])  # Praat writes the second in UTF-16
def test_what_praat_saves_is_read(tmp_path: Path, form: str, name: str):
    pytest.importorskip("parselmouth", reason="praat-parselmouth is absent")
    from parselmouth.praat import call

    grid = call("Create TextGrid", 0, 2.5, f"{name} bell", "bell")
    call(grid, "Insert boundary", 1, 0.7)
    call(grid, "Insert point", 2, 0.5, "dong")
    call(grid, "Set interval text", 1, 2, 'she said "yes"\nand no')
    call(grid, f"Save as {form} file", str(tmp_path / "x.TextGrid"))
    assert textgrid.read(tmp_path / "x.TextGrid") == Diarization((Turn(0.7, 2.5, name),), 2.5, "x")

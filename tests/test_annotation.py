"""Turns and diarizations: laws of merge, crop and relabel; invalid ones are refused."""

import io
import math
from dataclasses import FrozenInstanceError
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.errors import InputError
from tests.strategies import diarizations

CELLS = 2000  # 20 s in hundredths


def spoken(recording: Diarization) -> dict[str, set[int]]:
    """Return the hundredths of a second in which each speaker speaks."""
    cells: dict[str, set[int]] = {}
    for turn in recording:
        cells.setdefault(turn.speaker, set()).update(range(round(turn.start * 100), round(turn.end * 100)))
    return cells


@given(diarizations())
def test_turns_are_sorted_and_inside_the_recording(recording):
    keys = [(turn.start, turn.end, turn.speaker) for turn in recording]
    assert keys == sorted(keys)
    assert [recording[number] for number in range(len(recording))] == list(recording)
    assert all(0 <= turn.start < turn.end <= recording.duration for turn in recording)


@given(diarizations())
def test_merging_keeps_who_speaks_when_and_leaves_gaps(recording):
    merged = recording.merge()
    assert spoken(merged) == spoken(recording)
    assert merged.merge() == merged
    for name in merged.speakers:
        own = [turn for turn in merged if turn.speaker == name]
        assert all(first.end < second.start for first, second in pairwise(own))


@given(diarizations(), st.integers(0, CELLS), st.integers(0, CELLS))
def test_a_crop_says_what_the_whole_says_in_that_window(recording, one, other):
    start, end = sorted((one, other))
    cropped = recording.crop(start / 100, end / 100)
    window = range(start, min(end, round(recording.duration * 100)))
    expected = {name: {cell - start for cell in cells if cell in window} for name, cells in spoken(recording).items()}
    assert spoken(cropped) == {name: cells for name, cells in expected.items() if cells}
    assert cropped.duration == pytest.approx(len(window) / 100)


def test_a_crop_has_other_frames_than_the_whole_and_does_not_have_those():
    assert Diarization((), 2, origin=Origin(time_axis=TimeAxis(0.0, 0.08, 25))).crop(1, 2).origin is None


@given(diarizations(), st.integers(0, CELLS), st.integers(0, CELLS))
def test_a_window_is_shifted_back_into_its_recording(recording, one, other):
    start, end = sorted((one / 100, other / 100))
    moved = recording.crop(start, end).shift(start)
    assert spoken(moved) == spoken(recording.within([(start, end)]))


@given(diarizations(), st.lists(st.tuples(st.integers(0, CELLS), st.integers(0, 300)), max_size=6))
def test_within_regions_is_said_what_the_whole_says_there(recording, parts):
    kept = recording.within([(start / 100, (start + length) / 100) for start, length in parts])
    inside = {cell for start, length in parts for cell in range(start, start + length)}
    expected = {name: cells & inside for name, cells in spoken(recording).items()}
    assert spoken(kept) == {name: cells for name, cells in expected.items() if cells}


@given(diarizations())
def test_alone_is_whoever_speaks_while_nobody_else_does(recording):
    everybody = spoken(recording)
    others = {name: [everybody[other] for other in everybody if other != name] for name in everybody}
    expected = {name: cells.difference(*others[name]) for name, cells in everybody.items()}
    assert spoken(recording.alone()) == {name: cells for name, cells in expected.items() if cells}


def test_turns_of_one_speaker_that_touch_or_overlap_are_alone():
    turns = Turn(0, 2, "a", 0.9), Turn(1, 3, "a"), Turn(3, 5, "b"), Turn(4, 6, "c"), Turn(6, 7, "c")
    kept = Turn(0, 2, "a", 0.9), Turn(1, 3, "a"), Turn(3, 4, "b"), Turn(5, 6, "c"), Turn(6, 7, "c")
    assert Diarization(turns, 8).alone() == Diarization(kept, 8)


def test_the_frames_of_a_window_that_is_shifted_go_with_it():
    recording = Diarization((Turn(0, 1, "a"),), 2, origin=Origin(time_axis=TimeAxis(0.5, 0.08, 25)))
    moved = recording.shift(3)
    assert moved.origin is not None
    assert moved.origin.time_axis == TimeAxis(3.5, 0.08, 25)
    assert moved.duration == 5


def test_a_shift_by_a_number_of_numpy_can_be_written():
    recording = Diarization((Turn(0, 1, "a"),), 2, origin=Origin(time_axis=TimeAxis(0.5, 0.08, 25)))
    moved = recording.shift(np.float32(3))  # pyright: ignore[reportArgumentType]
    assert moved == recording.shift(3)
    assert moved.to_json() == recording.shift(3).to_json()


@given(diarizations())
def test_speakers_come_in_order_of_arrival(recording):
    first = [min((t.start, t.speaker) for t in recording if t.speaker == name) for name in recording.speakers]
    assert first == sorted(first)
    assert set(recording.speakers) == {turn.speaker for turn in recording}


@given(diarizations())
def test_relabelling_back_is_the_same(recording):
    there = {old: new for old, new in {"a": "b", "b": "c", "c": "a", "d": "d"}.items() if old in recording.speakers}
    back = {new: old for old, new in there.items()}
    assert recording.relabel(there).relabel(back) == recording


@given(diarizations())
def test_pyannote_and_back_is_the_same(recording):
    annotation = recording.to_pyannote()
    assert annotation.uri == "audio"
    assert Diarization.from_pyannote(annotation, recording.duration) == recording


@given(recording=diarizations(grid=1000))
def test_rttm_and_back_is_the_same_joined(tmp_path_factory, recording):
    path = tmp_path_factory.mktemp("rttm") / "audio.rttm"
    path.write_text(recording.to_rttm())
    assert Diarization.from_rttm(path, duration=recording.duration) == recording.merge()
    assert Diarization.from_rttm(path, "audio").duration == max((turn.end for turn in recording), default=0)


def test_of_an_rttm_file_about_several_recordings_one_is_named(tmp_path):
    path = tmp_path / "calls.rttm"
    path.write_text("SPEAKER a 1 0 2 <NA> <NA> ada <NA> <NA>\nSPEAKER b 1 1 2 <NA> <NA> bob <NA> <NA>\n")
    assert Diarization.from_rttm(path, "b") == Diarization((Turn(1, 3, "bob"),), 3, "b")
    path.write_text("SPEAKER my_caf\u00e9 1 0 2 <NA> <NA> ada <NA> <NA>\n", encoding="utf-8")
    assert Diarization.from_rttm(path, "my cafe\u0301").duration == 2
    path.write_text("")
    assert Diarization.from_rttm(path, "b") == Diarization((), 0, "b")
    path.write_text("SPEAKER a 1 0 2 <NA> <NA> ada <NA> <NA>\nSPEAKER b 1 1 2 <NA> <NA> bob <NA> <NA>\n")
    with pytest.raises(InputError, match=r"calls\.rttm has turns of a, b: give one of them as uri"):
        Diarization.from_rttm(path)
    with pytest.raises(InputError, match=r"calls\.rttm has turns of a, b: not of 'c'"):
        Diarization.from_rttm(path, "c")
    with pytest.raises(InputError, match=r"the id of a recording \(uri\) must be a string, got 3\.0; duration= is"):
        Diarization.from_rttm(path, 3.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [Diarization.from_rttm, Diarization.from_json])
def test_what_is_no_path_is_refused_in_a_sentence(read):
    with pytest.raises(InputError, match="the path of a file is required, got StringIO"):
        read(io.StringIO("SPEAKER a 1 0 2 <NA> <NA> ada <NA> <NA>\n"))
    with pytest.raises(InputError, match="the path of a file is required, got text: use a format's `parse`"):
        read("SPEAKER a 1 0 2 <NA> <NA> ada <NA> <NA>\n" * 10)
    for path in ("a\0b", Path("a\0b")):
        with pytest.raises(InputError, match=r"^cannot read 'a\\x00b': .*null"):
            read(path)


def test_two_speakers_may_become_one():
    recording = Diarization((Turn(0, 2, "a"), Turn(1, 3, "b"), Turn(5, 6, "c")), 10)
    assert recording.relabel({"b": "a"}).merge().turns == (Turn(0, 3, "a"), Turn(5, 6, "c"))


def test_who_does_not_speak_cannot_be_renamed():
    with pytest.raises(InputError, match="audio has no speaker 'nobody', only a"):
        Diarization((Turn(0, 2, "a"),), 10).relabel({"a": "b", "nobody": "X"})


@pytest.mark.parametrize("names", [["X", "Y"], {"a"}, str.upper, "X"])
def test_new_names_are_given_by_the_old(names: Any):
    with pytest.raises(InputError, match="relabel needs a mapping of names to new names, got"):
        Diarization((Turn(0, 2, "a"),), 10).relabel(names)


@pytest.mark.parametrize("gap", [-5, -0.1, float("nan"), "1", Diarization((), 1)])
def test_a_gap_is_not_negative(gap):
    with pytest.raises(InputError, match="gap_s must be 0 seconds or more"):
        Diarization((Turn(0, 2, "a"), Turn(1, 3, "a")), 4).merge(gap)


def test_merging_over_a_gap():
    turns = (Turn(0, 1, "a"), Turn(1.5, 2, "a"), Turn(2.6, 3, "a"), Turn(1, 2, "b"))
    assert Diarization(turns, 3).merge(0.5).turns == (Turn(0, 2, "a"), Turn(1, 2, "b"), Turn(2.6, 3, "a"))


def test_the_confidence_of_a_merged_turn_is_weighted_by_length():
    assert Diarization((Turn(0, 0.7, "a"), Turn(0.8, 1, "a")), 3).merge(0.1).turns == (Turn(0, 1, "a"),)
    assert Diarization((Turn(0, 1, "a", 0.9), Turn(1, 4, "a", 0.5)), 4).merge().turns == (Turn(0, 4, "a", 0.6),)
    assert Diarization((Turn(0, 1, "a", 0.9), Turn(1, 4, "a")), 4).merge().turns == (Turn(0, 4, "a"),)


def test_turns_past_the_end_are_clipped_or_dropped():
    assert Diarization((Turn(0, 3, "a"), Turn(2, 3, "b")), 2).turns == (Turn(0, 2, "a"),)


def test_without_a_duration_a_pyannote_annotation_ends_with_its_last_turn():
    annotation = Diarization((Turn(0, 3, "a"), Turn(1, 2, "b")), 30, "x").to_pyannote()
    assert Diarization.from_pyannote(annotation) == Diarization((Turn(0, 3, "a"), Turn(1, 2, "b")), 3, "x")


def test_a_pyannote_annotation_without_a_name_is_called_as_other_recordings_are():
    annotation = Diarization((Turn(0, 3, "a"),), 3).to_pyannote()
    annotation.uri = None
    assert Diarization.from_pyannote(annotation).uri == "audio"


def test_what_is_no_pyannote_annotation_is_refused():
    with pytest.raises(InputError, match="a pyannote Annotation is needed, got Diarization"):
        Diarization.from_pyannote(Diarization((), 1))  # pyright: ignore[reportArgumentType]


def test_values_do_not_change_and_can_be_keys():
    recording = Diarization((Turn(0, 1, "a"),), 1, origin=Origin(settings={"onset": 0.5}))
    with pytest.raises(FrozenInstanceError):
        recording.duration = 2  # pyright: ignore[reportAttributeAccessIssue]
    assert len({recording, recording}) == 1
    assert bool(Diarization((), 1))


@pytest.mark.parametrize(
    ("start", "end", "speaker", "confidence"),
    [(-0.1, 1, "a", None), (1, 1, "a", None), (2, 1, "a", None), (0, math.inf, "a", None), (math.nan, 1, "a", None),
     (0, 1, "", None), (0, 1, 1, None), (0, 1, "a", math.nan), (0, 1, "a", "sure")],
)  # fmt: skip
def test_an_impossible_turn_is_refused(start, end, speaker, confidence):
    with pytest.raises(InputError):
        Turn(start, end, speaker, confidence)


@pytest.mark.parametrize("number", [None, "soon", [1]])
def test_what_is_no_number_is_refused_by_its_name(number: Any):
    with pytest.raises(InputError, match="the start of a turn must be a number, got"):
        Turn(number, 1, "a")
    with pytest.raises(InputError, match="the end of a turn must be a number, got"):
        Turn(0, number, "a")
    with pytest.raises(InputError, match="the duration of a recording must be a number, got"):
        Diarization((), number)


def test_a_tuple_is_no_turn():
    turns: Any = [Turn(0, 1, "a"), (1, 2, "a")]
    with pytest.raises(InputError, match=r"holds Turn\(start, end, speaker\), got \(1, 2, 'a'\)"):
        Diarization(turns, 3)


@pytest.mark.parametrize("turns", [None, 3.0, Turn(0, 1, "a")])
def test_what_holds_no_turns_is_refused(turns: Any):
    with pytest.raises(InputError, match="needs its turns, then its duration, got"):
        Diarization(turns, 3)


def test_a_turn_is_before_turns_only():
    with pytest.raises(TypeError, match="'<' not supported between instances of 'Turn' and 'int'"):
        sorted([5, Turn(0, 1, "a")])  # type: ignore[type-var]


def test_turns_are_indexed_and_sliced():
    turns = (Turn(0, 1, "a"), Turn(1, 2, "b"), Turn(2, 3, "c"))
    assert Diarization(turns, 3)[1] == turns[1]
    assert Diarization(turns, 3)[1:] == turns[1:]


def test_an_impossible_recording_or_crop_is_refused():
    for duration in (-1, math.nan, math.inf):
        with pytest.raises(InputError, match="duration"):
            Diarization((), duration)
    with pytest.raises(InputError, match="the origin of a diarization must be an Origin, got 'embedded'"):
        Diarization((), 1, "meeting", "embedded")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="uri"):
        Diarization((), 1, "")
    with pytest.raises(InputError, match="crop"):
        Diarization((), 1).crop(1, 0)
    with pytest.raises(InputError, match="0 s or more"):
        Diarization((), 1).shift(-1)
    for time in (None, "noon", (0, 1)):
        with pytest.raises(InputError, match="the end of a crop must be a number, got"):
            Diarization((), 1).crop(0, time)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InputError, match="a shift must be a number, got"):
            Diarization((), 1).shift(time)  # pyright: ignore[reportArgumentType]

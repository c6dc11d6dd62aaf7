"""Turns to activity: equal to counting samples; columns in order of arrival."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.grid import FrameGrid
from sortformer.targets import activity
from tests.oracles.activity_samples import covered_frames, nemo_frames
from tests.strategies import turn_lists

GRID = FrameGrid()
COARSE = FrameGrid(sample_rate=200, hop_samples=2, subsampling=8)  # 80 ms frames of 16 samples: an oracle in no time


@given(turn_lists(end_s=4, grid=1000), st.integers(0, 60))
def test_a_frame_is_active_when_half_of_its_samples_are_covered(turns, num_frames):
    found, speakers = activity(turns, num_frames, 4, COARSE)
    expected = {name: covered_frames(turns, name, num_frames, COARSE) for name in "abcd"}
    assert set(speakers) == {name for name, frames in expected.items() if any(frames)}
    for slot, name in enumerate(speakers):
        assert found[:, slot].tolist() == expected[name]
    assert not found[:, len(speakers) :].any()


@given(turn_lists(end_s=4, grid=1000), st.integers(0, 60))
def test_nemo_labelling_pools_nine_labels(turns, num_frames):
    found, speakers = activity(turns, num_frames, 4, GRID, labelling="nemo")
    expected = {name: nemo_frames(turns, name, num_frames) for name in "abcd"}
    assert set(speakers) == {name for name, frames in expected.items() if any(frames)}
    for slot, name in enumerate(speakers):
        assert found[:, slot].tolist() == expected[name]


def test_frames_of_10_ms_are_the_labels_themselves():
    found, _ = activity([Turn(0.03, 0.05, "a")], 7, 1, FrameGrid(subsampling=1), labelling="nemo")
    assert found[:, 0].tolist() == [0, 0, 0, 1, 1, 0, 0]


@given(turn_lists(), st.sampled_from(["cover", "nemo"]))
def test_columns_are_in_order_of_first_active_frame(turns, labelling):
    found, speakers = activity(turns, 250, 4, GRID, labelling)
    arrivals = found.argmax(axis=0)[: len(speakers)].tolist()
    assert arrivals == sorted(arrivals)


@given(turn_lists(), st.permutations("abcd"))
def test_renaming_speakers_changes_nothing_but_their_names(turns, names):
    arrivals = [activity([t for t in turns if t.speaker == name], 250, 1, GRID)[0].argmax() for name in "abcd"]
    renamed = [Turn(t.start, t.end, names["abcd".index(t.speaker)]) for t in turns]
    found, speakers = activity(turns, 250, 4, GRID)
    again, new_speakers = activity(renamed, 250, 4, GRID)
    if len(set(arrivals)) == 4:
        assert (found == again).all()
        assert [names["abcd".index(name)] for name in speakers] == list(new_speakers)
    else:  # simultaneous arrivals are sorted by name
        assert sorted(map(bytes, found.T)) == sorted(map(bytes, again.T))


def test_exactly_half_a_frame_counts_and_a_sample_less_does_not():
    assert activity([Turn(0.04, 0.08, "a")], 1, 1, GRID)[0].tolist() == [[1]]
    assert activity([Turn(0.04 + 1 / 16000, 0.08, "a")], 1, 1, GRID)[0].tolist() == [[0]]


def test_half_a_frame_may_come_in_pieces():
    pieces = [Turn(k / 16000, (k + 1) / 16000, "a") for k in range(0, 1280, 2)]
    assert activity(pieces, 1, 1, GRID)[0].tolist() == [[1]]
    assert activity(pieces[1:], 1, 1, GRID)[0].tolist() == [[0]]


def test_two_who_arrive_in_one_frame_go_by_exact_start_then_name():
    turns = [Turn(0.02, 1, "a"), Turn(0.01, 1, "b"), Turn(0.02, 0.5, "c")]
    assert activity(turns, 20, 4, GRID)[1] == ("b", "a", "c")


def test_speakers_beyond_the_slots_are_named_but_have_no_column():
    turns = [Turn(k, k + 1, name) for k, name in enumerate("cab")]
    found, speakers = activity(turns, 40, 2, GRID)
    assert speakers == ("c", "a", "b")
    assert found.shape == (40, 2)
    assert found.sum() == activity(turns[:2], 40, 2, GRID)[0].sum()


def test_a_diarization_is_taken_as_it_is():
    found, speakers = activity(Diarization((Turn(0.08, 0.16, "a"),), 1), 3, 1, GRID)
    assert found.tolist() == [[0], [1], [0]]
    assert found.dtype == np.float32
    assert speakers == ("a",)


@pytest.mark.parametrize("arguments", [(-1, 4), (10, 0), (10, 4, GRID, "other")])
def test_impossible_requests_are_refused(arguments):
    frames, slots, *rest = arguments
    with pytest.raises(InputError):
        activity([], frames, slots, *(rest or [GRID]))

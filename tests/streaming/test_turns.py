"""Turns in a stream: those of the whole recording, each returned once and never revoked."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sortformer.config.confidence import ConfidenceConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.postprocess import turns
from sortformer.streaming.turns import add_frames, end_turns, free_slot, start_turns
from tests.strategies import probabilities

seconds = st.sampled_from([0.0, 0.0, 0.002, 0.01, 0.063, 0.08, 0.15, 0.16, 0.24, 0.296, 0.5])
configs = st.builds(
    PostprocessConfig,
    onset=st.sampled_from([0.3, 0.5, 0.6]),
    offset=st.sampled_from([0.3, 0.5, 0.7, 1.0]),
    pad_on_s=seconds,
    pad_off_s=seconds,
    min_on_s=seconds,
    min_off_s=seconds,
    decision=st.sampled_from(["slots", "least_error"]),
    confidence=st.sampled_from([None, ConfidenceConfig(0.8, -0.7)]),
)
PLAIN = PostprocessConfig()


@st.composite
def talks(draw: st.DrawFn) -> np.ndarray:
    """Probabilities (T, S) of slots that speak in stretches of 1 to 12 frames, with overlaps."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    slots = [np.repeat(rng.integers(0, 21, 60), rng.integers(1, 13, 60)) for _ in range(draw(st.integers(1, 4)))]
    return np.stack([slot[:60] for slot in slots], axis=1) / 20


@given(probs=probabilities(max_frames=60) | talks(), config=configs, data=st.data())
@settings(max_examples=150)
def test_in_any_cut_the_turns_are_those_of_the_frames_so_far(probs, config, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(probs)), max_size=6)))
    state, given_turns = start_turns(probs.shape[1]), []
    for part in np.split(probs, cuts):
        state, new = add_frames(config, state, part, 8)
        given_turns += new
        so_far = turns(probs[: state.ticks // 8], config, 0.08)
        _same([*given_turns, *end_turns(config, state, 8)[1]], so_far)
    _same([*given_turns, *end_turns(config, state, 8)[1]], turns(probs, config, 0.08))


@given(probs=probabilities(max_frames=60) | talks(), config=configs, frame_ticks=st.sampled_from([1, 8]))
@settings(max_examples=80)
def test_a_turn_is_given_when_its_delay_has_passed(probs, config, frame_ticks):
    state = start_turns(probs.shape[1])
    for frame in probs:
        before = state.ticks / 100
        state, new = add_frames(config, state, frame[None], frame_ticks)
        assert all(before < turn.end + config.turn_delay_s + 1e-9 for turn in new)
    now = state.ticks / 100
    assert all(now < turn.end + config.turn_delay_s + 1e-9 for turn in end_turns(config, state, frame_ticks)[1])


def test_a_turn_waits_for_what_may_turn_out_to_be_nothing():
    config = PostprocessConfig(min_on_s=0.24, min_off_s=0.5, pad_on_s=0.06)
    state, waited = start_turns(1), None
    for tick, prob in enumerate(_column((10, 60), (115, 132), frames=200)):
        state, new = add_frames(config, state, prob[None], 1)
        waited = (tick + 1) / 100 - new[0].end if new else waited
    assert waited == pytest.approx(config.turn_delay_s, abs=0.025)


def _same(found, expected):
    found = sorted(found)
    assert [dataclasses.replace(turn, confidence=None) for turn in found] == [
        dataclasses.replace(turn, confidence=None) for turn in expected
    ]
    assert [turn.confidence for turn in found] == pytest.approx([turn.confidence for turn in expected])


def _column(*stretches, frames=40):
    column = np.zeros((frames, 1))
    for start, end in stretches:
        column[start:end] = 0.9
    return column


def test_a_turn_is_given_once_nothing_can_join_it():
    config = PostprocessConfig(min_off_s=0.4)
    state, early = add_frames(config, start_turns(1), _column((2, 5), frames=9), 8)
    assert early == ()
    state, late = add_frames(config, state, np.zeros((2, 1)), 8)
    assert [(turn.start, turn.end) for turn in late] == [(0.16, 0.4)]
    assert end_turns(config, state, 8)[1] == ()


def test_who_came_first_is_named_first_though_the_turn_is_still_open():
    long, short = _column((0, 20), frames=20), _column((1, 5), frames=20)
    state, given_turns = add_frames(PLAIN, start_turns(2), np.concatenate([short, long], axis=1), 8)
    assert [(turn.start, turn.speaker) for turn in given_turns] == [(0.08, "speaker_1")]
    assert [(turn.start, turn.speaker) for turn in end_turns(PLAIN, state, 8)[1]] == [(0.0, "speaker_0")]


PADDED = PostprocessConfig(pad_on_s=0.1, pad_off_s=0.1, min_on_s=0.3)
LATE_AND_EARLY = np.concatenate([_column((6, 20), frames=24), _column((5, 6), (8, 20), frames=24)], axis=1)


def test_who_may_yet_have_come_first_is_waited_for():
    """The second slot came first if it speaks again before its first frame is out of reach, as it does."""
    state, early = add_frames(PADDED, start_turns(2), LATE_AND_EARLY[:8], 8)
    assert early == ()
    state, late = add_frames(PADDED, state, LATE_AND_EARLY[8:], 8)
    found = [*late, *end_turns(PADDED, state, 8)[1]]
    assert [(turn.start, turn.speaker) for turn in sorted(found)] == [(0.3, "speaker_0"), (0.38, "speaker_1")]


def test_the_turn_of_a_freed_slot_waits_for_nobody():
    state, _ = add_frames(PADDED, start_turns(2), LATE_AND_EARLY[:8], 8)
    _, closed = free_slot(PADDED, state, 0, 8)
    assert [(turn.start, turn.end, turn.speaker) for turn in closed] == [(0.38, 0.64, "speaker_0")]


def test_whoever_waited_for_a_freed_slot_is_named():
    state, _ = add_frames(PADDED, start_turns(2), LATE_AND_EARLY[:8], 8)
    assert [slot.name for slot in state.slots] == [None, None]
    state, _ = free_slot(PADDED, state, 1, 8)
    assert [slot.name for slot in state.slots] == ["speaker_0", None]


@given(probs=talks(), config=configs, frame=st.integers(0, 60))
@example(probs=LATE_AND_EARLY, config=PADDED, frame=8)  # when nobody has a name yet
@settings(max_examples=60)
def test_a_slot_that_is_freed_unheard_changes_nobodys_name(probs, config, frame):
    probs = np.concatenate([probs, np.zeros((len(probs), 1))], axis=1)
    state, early = add_frames(config, start_turns(probs.shape[1]), probs[:frame], 8)
    state, closed = free_slot(config, state, probs.shape[1] - 1, 8)
    state, late = add_frames(config, state, probs[frame:], 8)
    assert closed == ()
    _same([*early, *late, *end_turns(config, state, 8)[1]], turns(probs, config, 0.08))


def test_a_freed_slot_is_named_after_those_that_surely_spoke_before_it():
    """The first slot may still be noise: the second waits for it, but keeps its place before the third."""
    probs = np.concatenate([_column((5, 6)), _column((5, 12)), _column((6, 12))], axis=1)
    state, early = add_frames(PADDED, start_turns(3), probs[:8], 8)
    assert [slot.name for slot in state.slots] == [None, None, None]
    assert [slot.name for slot in free_slot(PADDED, state, 1, 8)[0].slots] == [None, None, None]
    state, closed = free_slot(PADDED, state, 2, 8)
    assert [(turn.start, turn.speaker) for turn in (*early, *closed)] == [(0.38, "speaker_1")]
    state, late = add_frames(PADDED, state, probs[8:], 8)
    assert [(turn.start, turn.speaker) for turn in (*late, *end_turns(PADDED, state, 8)[1])][:1] == [(0.3, "speaker_0")]


def test_turns_that_are_given_together_are_in_order_of_time():
    both = np.concatenate([_column((8, 12), (20, 24)), _column((2, 6), (14, 18))], axis=1)
    _, found = add_frames(PLAIN, start_turns(2), both, 8)
    assert [turn.start for turn in found] == [0.16, 0.64, 1.12, 1.6]


def test_what_is_remembered_does_not_grow_with_the_stream():
    config = PostprocessConfig(pad_on_s=0.2, pad_off_s=0.1, min_on_s=0.2, min_off_s=0.3)
    state, sizes = start_turns(2), []
    probs = np.random.default_rng(0).random((4_000, 2)).round()
    for part in np.split(probs, 400):
        state, _ = add_frames(config, state, part, 8)
        sizes.append(len(state.sums))
    longest = max(turn.duration for turn in turns(probs, config, 0.08)) / 0.08
    assert max(sizes) < longest + 20


def test_a_freed_slot_ends_its_turn_and_takes_a_new_name():
    state, _ = add_frames(PLAIN, start_turns(1), _column((2, 10), frames=10), 8)
    state, closed = free_slot(PLAIN, state, 0, 8)
    assert [(turn.start, turn.end, turn.speaker) for turn in closed] == [(0.16, 0.79, "speaker_0")]
    state, _ = add_frames(PLAIN, state, _column((0, 5), frames=5), 8)
    _, rest = end_turns(PLAIN, state, 8)
    assert [(turn.start, turn.speaker) for turn in rest] == [(0.8, "speaker_1")]

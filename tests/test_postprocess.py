"""Probabilities to turns: equal to the tick-by-tick oracle; one speaker at a time."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sortformer.annotation import speakers
from sortformer.config.confidence import ConfidenceConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.postprocess import expected_gain, turns
from tests.oracles.postprocess_loops import slot_segments
from tests.strategies import probabilities

STEP = 0.08
DIHARD = PostprocessConfig(onset=0.56, offset=1.0, pad_on_s=0.063, pad_off_s=0.002, min_on_s=0.007, min_off_s=0.151)
CALLHOME = PostprocessConfig(
    onset=0.641, offset=0.561, pad_on_s=0.229, pad_off_s=0.079, min_on_s=0.511, min_off_s=0.296
)

thresholds = st.integers(0, 20).map(lambda k: k / 20)
durations = st.one_of(
    st.just(0.0), st.integers(0, 500).map(lambda k: k / 1000), st.integers(0, 6).map(lambda k: k / 12.5)
)
configs = st.builds(PostprocessConfig, thresholds, thresholds, durations, durations, durations, durations)


def column(text: str) -> np.ndarray:
    """Return one slot from a string: a digit is tenths, '#' is 1."""
    return np.array([[1.0 if c == "#" else int(c) / 10] for c in text])


def times(diarization) -> list[tuple[float, float]]:
    return [(turn.start, turn.end) for turn in diarization]


@given(probabilities(), st.one_of(configs, st.sampled_from([DIHARD, CALLHOME])), st.sampled_from([1, 2, 8]))
def test_turns_are_those_of_the_loop_over_ticks(probs, config, repeats):
    found = turns(probs, config, repeats / 100)
    expected = sorted(
        (float(start), float(end)) for slot in probs.T for start, end in slot_segments(slot, config, repeats)
    )
    assert sorted(times(found)) == expected


@given(probabilities(), configs)
def test_speakers_are_numbered_in_order_of_arrival(probs, config):
    found = turns(probs, config, STEP)
    assert list(found.speakers) == [f"speaker_{k}" for k in range(len(found.speakers))]


def test_a_label_that_is_given_as_a_name_is_nobody_elses():
    probs = np.repeat(np.eye(3), 10, axis=0)
    assert turns(probs, PostprocessConfig(), STEP, names={2: "speaker_0"}).speakers == (
        "speaker_1",
        "speaker_2",
        "speaker_0",
    )
    assert turns(probs, PostprocessConfig(), STEP, names={0: "Ada", 2: "Ada"}).speakers == ("Ada", "speaker_0")


@pytest.mark.parametrize("slot", [-1, 3, "0"])
@pytest.mark.parametrize("choice", [lambda slot: {"names": {slot: "Ada"}}, lambda slot: {"slots": [0, slot]}])
def test_a_name_or_choice_of_no_slot_is_refused(slot: Any, choice: Any):
    asked = choice(slot)
    with pytest.raises(InputError, match=f"{next(iter(asked))} has the slot {slot}, but there are 3 slots, counted"):
        turns(np.repeat(np.eye(3), 10, axis=0), PostprocessConfig(), STEP, **asked)


@pytest.mark.parametrize("slots", [np.array([0, 1]), np.array([1]), np.array([], int)])
def test_slots_may_be_an_array(slots: Any):
    probs = np.repeat(np.array([[0.9, 0.8, 0.7]]), 50, axis=0)
    found = turns(probs, PostprocessConfig(), STEP, slots=slots)
    assert found == turns(probs, PostprocessConfig(), STEP, slots=slots.tolist())


@pytest.mark.parametrize(
    ("probs", "got"),
    [
        (np.ones((9, 2), np.uint8), "one of uint8"),
        (np.ones((9, 2), bool), "one of bool"),
        ([[0.5]] * 9, "list"),
        (torch.ones(9, 2), "Tensor"),
    ],
)
def test_probabilities_that_are_no_array_of_floats_are_refused(probs: Any, got: str):
    with pytest.raises(InputError, match=f"must be a numpy array of floats, got {got}"):
        turns(probs, PostprocessConfig(decision="least_error"), STEP)


@given(probabilities(), configs)
def test_exclusive_gives_each_instant_to_the_most_probable_of_those_who_have_it(probs, config):
    names = {slot: str(slot) for slot in range(probs.shape[1])}
    free, alone = (turns(probs, config, STEP, exclusive=exclusive, names=names) for exclusive in (False, True))
    for tick in range(len(probs) * 8):
        had, given = (
            [int(turn.speaker) for turn in each if round(turn.start * 100) <= tick < round(turn.end * 100)]
            for each in (free, alone)
        )
        assert given == sorted(had, key=lambda slot: (-probs[tick // 8, slot], slot))[:1]


@given(probabilities(), configs)
def test_confidence_lies_between_the_extremes_of_the_probabilities(probs, config):
    for turn in turns(probs, config, STEP):
        assert turn.confidence is not None
        assert probs.min() - 1e-9 <= turn.confidence <= probs.max() + 1e-9


def test_exclusive_gives_nothing_to_a_slot_whose_turn_there_was_too_short():
    probs = np.array([[0.6, 0.0], [0.6, 0.9], [0.6, 0.0]])
    found = turns(probs, PostprocessConfig(min_on_s=0.16), STEP, exclusive=True)
    assert [(turn.start, turn.end, turn.speaker) for turn in found] == [(0, 0.23, "speaker_0")]


def test_thresholds_are_strict():
    config = PostprocessConfig(onset=0.6, offset=0.4)
    assert times(turns(column("0670"), config, STEP)) == [(0.16, 0.24)]
    assert times(turns(column("74430"), config, STEP)) == [(0, 0.24)]


def test_a_turn_that_is_open_at_the_end_stops_ten_milliseconds_early():
    assert times(turns(column("0##"), PostprocessConfig(), STEP)) == [(0.08, 0.23)]


def test_short_turns_go_before_short_gaps_are_filled():
    config = PostprocessConfig(min_on_s=0.16, min_off_s=0.32)
    assert times(turns(column("##00#00##00"), config, STEP)) == [(0, 0.16), (0.56, 0.72)]


def test_a_turn_or_a_gap_as_long_as_its_threshold_stays():
    config = PostprocessConfig(min_on_s=0.16, min_off_s=0.08)
    assert times(turns(column("##0##00"), config, STEP)) == [(0, 0.16), (0.24, 0.4)]


def test_an_offset_above_the_onset_is_rebuilt_by_padding():
    assert times(turns(column("00999999" * 2 + "00"), DIHARD, STEP)) == [(0.1, 1.27)]


def test_turns_that_touch_by_their_padding_are_one_and_as_long_as_both():
    config = PostprocessConfig(pad_on_s=0.04, pad_off_s=0.04, min_on_s=0.3)
    assert times(turns(column("##0##0"), config, STEP)) == [(0, 0.44)]


def test_padding_stays_inside_the_recording():
    config = PostprocessConfig(pad_on_s=1, pad_off_s=1)
    assert times(turns(column("0#0"), config, STEP)) == [(0, 0.24)]
    assert times(turns(column("0#0"), config, STEP, duration=0.2)) == [(0, 0.2)]


def test_confidence_is_the_mean_probability_inside_the_turn():
    found = turns(np.array([[0.6], [0.8], [0.1]]), PostprocessConfig(), STEP)
    assert found.turns[0].confidence == pytest.approx(0.7)


def test_confidence_is_what_the_settings_make_of_the_mean():
    found = turns(np.array([[0.6], [0.8], [0.1]]), PostprocessConfig(confidence=ConfidenceConfig(2, -1)), STEP)
    odds = (0.7 / 0.3) ** 2 / np.e
    assert found.turns[0].confidence == pytest.approx(odds / (1 + odds))


def test_silence_has_no_turns():
    found = turns(np.zeros((100, 4)), PostprocessConfig(), STEP)
    assert found.turns == ()
    assert found.duration == pytest.approx(8)


def test_a_step_off_the_grid_and_broken_probabilities_are_refused():
    for step_s in (0.0125, 0.079, 0.0):
        with pytest.raises(InputError, match="multiple of 10 ms"):
            turns(np.zeros((3, 2)), PostprocessConfig(), step_s)
    with pytest.raises(InputError, match="shape"):
        turns(np.zeros(3), PostprocessConfig(), STEP)
    for wrong, why in ((np.nan, "NaN$"), (np.inf, "a sigmoid"), (1.01, "a sigmoid"), (-0.01, "a sigmoid")):
        with pytest.raises(InputError, match=why):
            turns(np.array([[0.5, wrong], [0.5, 0.5]]), PostprocessConfig(), STEP)


def test_a_mean_of_probabilities_may_be_rounded_up():
    whole = np.ones((3, 2), np.float32)
    assert turns(np.nextafter(whole, np.float32(2)), PostprocessConfig(), STEP).speakers == ("speaker_0", "speaker_1")


def test_two_slots_that_start_together_keep_their_order():
    found = turns(np.ones((2, 3)), replace(PostprocessConfig(), onset=0.7), STEP)
    assert speakers(found.turns) == ("speaker_0", "speaker_1", "speaker_2")


def brute_force_decision(probs: np.ndarray) -> set[int]:
    """The set of slots with the least expected error, where the number of speakers is known up to one.

    Every set is tried by the definition of the error: max(speakers, named slots) - correctly named ones.
    """
    mean = probs.sum()
    fewer, rest = int(np.floor(mean)), mean - np.floor(mean)
    spoken = {fewer: 1 - rest, fewer + 1: rest}
    sets = [set(each) for size in range(len(probs) + 1) for each in itertools.combinations(range(len(probs)), size)]

    def error(named: set[int]) -> float:
        return sum(chance * max(count, len(named)) for count, chance in spoken.items()) - probs[list(named)].sum()

    return min(sets, key=lambda named: (round(error(named), 9), len(named)))


@given(arrays(np.float64, 4, elements=st.floats(0.01, 0.99)))
def test_least_error_names_the_set_with_the_least_expected_error(probs):
    probs = np.round(probs, 3) + np.array([0, 1e-4, 2e-4, 3e-4])  # no ties
    gain = expected_gain(probs[None])[0]
    assume(np.abs(gain - 0.5).min() > 1e-6)
    assert set(np.flatnonzero(gain > 0.5)) == brute_force_decision(probs)


@given(arrays(np.float64, st.integers(1, 12), elements=st.floats(0.01, 1.0)))
def test_the_gain_weighs_a_slot_against_the_chance_that_fewer_speak(probs):
    certain, rest = divmod(probs.sum(), 1)
    for rank, slot in enumerate(np.argsort(-probs, kind="stable"), start=1):
        fewer = (1 - rest) * (certain < rank) + rest * (certain + 1 < rank)
        assert expected_gain(probs[None])[0, slot] == pytest.approx(probs[slot] / (probs[slot] + fewer))


def test_least_error_names_the_likelier_of_two_who_cannot_be_told_apart():
    probs = np.full((10, 2), [0.48, 0.45])
    assert not turns(probs, PostprocessConfig(), 0.08).turns
    (only,) = turns(probs, PostprocessConfig(decision="least_error"), 0.08).turns
    assert only.confidence == pytest.approx(0.48)


def test_least_error_leaves_silence_and_certainty_alone():
    probs = np.array([[0.02, 0.01], [0.99, 0.01], [0.98, 0.97]])
    assert ((expected_gain(probs) > 0.5) == (probs > 0.5)).all()

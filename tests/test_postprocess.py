"""Probabilities to turns: equal to the tick-by-tick oracle; one speaker at a time; speaker counts."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sortformer.annotation import speakers
from sortformer.config.clustering import MOST_SPEAKERS, ClusteringConfig
from sortformer.config.confidence import ConfidenceConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.postprocess import expected_gain, first_heard, keep_slots, speaker_range, turns, warn_if_full
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


@given(probabilities(), configs)
def test_exclusive_turns_never_overlap_and_cover_the_same_speech(probs, config):
    free, alone = turns(probs, config, STEP), turns(probs, config, STEP, exclusive=True)
    grid = np.zeros((2, len(probs) * 8), dtype=int)
    for row, diarization in zip(grid, (free, alone), strict=True):
        for start, end in times(diarization):
            row[round(start * 100) : round(end * 100)] += 1
    assert (grid[1] == (grid[0] > 0)).all()


@given(probabilities(), configs)
def test_confidence_lies_between_the_extremes_of_the_probabilities(probs, config):
    for turn in turns(probs, config, STEP):
        assert turn.confidence is not None
        assert probs.min() - 1e-9 <= turn.confidence <= probs.max() + 1e-9


@given(probabilities(), configs, st.integers(1, 4))
def test_never_more_speakers_than_asked_for(probs, config, number):
    kept = keep_slots(probs, config, STEP, 0, number)
    assert len(turns(probs, config, STEP, slots=kept).speakers) <= number


@given(probabilities(), configs, st.integers(1, 4))
def test_who_is_kept_has_the_turns_that_they_have_beside_the_others(probs, config, number):
    names = {slot: f"slot_{slot}" for slot in range(probs.shape[1])}
    kept = keep_slots(probs, config, STEP, 0, number)
    free, limited = (turns(probs, config, STEP, names=names, slots=slots) for slots in (None, kept))
    assert limited.turns == tuple(turn for turn in free if turn.speaker in {names[slot] for slot in kept})


def test_a_voice_that_is_torn_between_two_slots_is_heard_where_only_one_may_speak():
    probs, config = np.tile([0.5, 0.45, 0.02], (100, 1)), PostprocessConfig(decision="least_error")
    assert times(turns(probs, config, STEP)) == [(0, 7.99)]
    assert times(turns(probs, config, STEP, slots=keep_slots(probs, config, STEP, 0, 1))) == [(0, 7.99)]


def test_exclusive_gives_the_instant_to_the_most_probable():
    probs = np.array([[0.9, 0.0], [0.9, 0.8], [0.7, 0.8], [0.0, 0.8], [0.0, 0.0]])
    found = turns(probs, PostprocessConfig(), STEP, exclusive=True)
    assert [(t.start, t.end, t.speaker) for t in found] == [(0, 0.16, "speaker_0"), (0.16, 0.32, "speaker_1")]


def test_exclusive_gives_the_instant_to_the_first_of_equals():
    (only,) = turns(np.full((3, 2), 0.9), PostprocessConfig(), STEP, exclusive=True, names={0: "Ada", 1: "Bob"})
    assert only.speaker == "Ada"


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


def test_exactly_n_keeps_the_most_active_slots():
    probs = np.concatenate([column("##00000000"), column("000####000"), column("0000000###")], axis=1)
    kept = keep_slots(probs, PostprocessConfig(), STEP, 2, 2)
    assert sorted(kept) == [1, 2]


def test_of_equally_active_slots_the_first_are_kept():
    probs = np.array([[1.0, 1.0, 1.0]] * 3)
    assert [keep_slots(probs, PostprocessConfig(), STEP, 0, most) for most in (1, 2)] == [(0,), (0, 1)]


def test_who_is_kept_is_decided_as_the_turns_are():
    probs = np.concatenate([np.tile([0.48, 0.45, 0.02], (90, 1)), np.tile([0.0, 0.0, 0.9], (10, 1))])
    assert keep_slots(probs, PostprocessConfig(decision="least_error"), STEP, 0, 1) == (0,)


def test_as_many_speakers_as_asked_for_do_not_warn(recwarn):
    assert sorted(keep_slots(np.array([[1.0, 1.0, 0.0]] * 3), PostprocessConfig(), STEP, 2, 2)) == [0, 1]
    assert not recwarn.list


def test_more_are_looked_for_until_as_many_speak_as_are_asked_for():
    one, two, three = (np.repeat([row], 20, axis=0) for row in ([0.9, 0.1], [0.9, 0.2, 0.9], [0.9] * 3))
    config = PostprocessConfig()
    assert first_heard([one, two, three], config, STEP, 2) is two
    assert first_heard(iter([two, three]), config, STEP, 0) is two
    assert first_heard([two, one], config, STEP, 3) is two
    assert first_heard([one, two, one, two.copy()], config, STEP, 3) is two


def test_fewer_speakers_than_asked_for_warns():
    with pytest.warns(UserWarning, match="asked for 2 speakers, but found only 1"):
        keep_slots(np.array([[1.0, 0.0]] * 3), PostprocessConfig(), STEP, 2, 2)
    with pytest.warns(UserWarning, match="asked for at least 2 speakers, but found none"):
        keep_slots(np.zeros((3, 2)), PostprocessConfig(), STEP, 2, 4)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"num_speakers": 3}, "at most 2 speakers"),
        ({"min_speakers": 3}, "at most 2 speakers"),
        ({"num_speakers": 0}, "whole number, 1 or more"),
        ({"max_speakers": 0}, "whole number, 1 or more"),
        ({"num_speakers": 2.0}, "num_speakers must be a whole number, 1 or more, got 2.0"),
        ({"min_speakers": "2"}, "min_speakers must be a whole number, 1 or more, got '2'"),
        ({"max_speakers": True}, "max_speakers must be a whole number, 1 or more, got True"),
        ({"min_speakers": 2, "max_speakers": 1}, "above max_speakers"),
        ({"num_speakers": 1, "max_speakers": 1}, "not both"),
    ],
)
def test_impossible_speaker_counts_are_refused(wanted, reason):
    with pytest.raises(InputError, match=reason):
        speaker_range(2, **wanted)


def test_no_more_speakers_than_the_model_can_tell_apart():
    assert speaker_range(8, max_speakers=20) == (0, 8)
    assert speaker_range(8, min_speakers=2, max_speakers=3) == (2, 3)
    assert speaker_range(8, min_speakers=8, max_speakers=20) == (8, 8)


def test_the_least_and_the_greatest_number_may_be_one():
    assert speaker_range(8, min_speakers=3, max_speakers=3) == speaker_range(8, num_speakers=3) == (3, 3)


def test_nobody_is_told_to_ask_for_more_speakers_than_there_can_be(recwarn):
    for limit in (8, MOST_SPEAKERS):
        warn_if_full("talk", limit, limit, ClusteringConfig(0.5))
        warn_if_full("talk", limit - 1, limit, ClusteringConfig(0.5))
    more, most = (str(warning.message) for warning in recwarn)
    assert f"give max_speakers, up to {MOST_SPEAKERS}, if there may be more, or max_speakers=8 if" in more
    assert f"these: give max_speakers={MOST_SPEAKERS} if there are no more" in most


def test_a_step_off_the_grid_and_broken_probabilities_are_refused():
    with pytest.raises(InputError, match="multiple of 10 ms"):
        turns(np.zeros((3, 2)), PostprocessConfig(), 0.0125)
    with pytest.raises(InputError, match="finite"):
        turns(np.full((3, 2), np.nan), PostprocessConfig(), STEP)


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


def test_least_error_names_the_likelier_of_two_who_cannot_be_told_apart():
    probs = np.full((10, 2), [0.48, 0.45])
    assert not turns(probs, PostprocessConfig(), 0.08).turns
    (only,) = turns(probs, PostprocessConfig(decision="least_error"), 0.08).turns
    assert only.confidence == pytest.approx(0.48)


def test_least_error_leaves_silence_and_certainty_alone():
    probs = np.array([[0.02, 0.01], [0.99, 0.01], [0.98, 0.97]])
    assert ((expected_gain(probs) > 0.5) == (probs > 0.5)).all()

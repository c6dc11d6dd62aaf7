"""How many speakers are asked for, kept and found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.config.clustering import MOST_SPEAKERS, ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.postprocess import turns
from sortformer.speaker_count import first_heard, keep_slots, speaker_range, warn_if_full
from tests.strategies import probabilities
from tests.test_postprocess import STEP, column, configs, times


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
    nobody = np.zeros((20, 2))
    assert first_heard([nobody, nobody.copy()], config, STEP, 1) is nobody


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
        ({"num_speakers": 1, "min_speakers": 1}, "not both"),
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
        warn_if_full("talk", limit, limit, ClusteringConfig(0.5), most=limit)
    more, most = (str(warning.message) for warning in recwarn)
    assert more.endswith(f"these: say how many there may be at most (max_speakers), up to {MOST_SPEAKERS}")
    assert most.endswith(
        f"say that there are at most {MOST_SPEAKERS} (max_speakers={MOST_SPEAKERS}) if there are no more"
    )

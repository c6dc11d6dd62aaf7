"""Speech shared among voices: the sum stays that of the frame, and who is likely in it depends on its neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer.clustering import unit_rows
from sortformer.shares import shared_out, shares, staying
from tests.oracles.voice_paths import voice_posteriors


@given(seed=st.integers(0, 1000), speech=st.floats(1.0, 3.0))
@settings(max_examples=25)
def test_a_frame_with_several_speakers_says_no_more_of_its_neighbours_than_one_with_one(seed, speech):
    rng = np.random.default_rng(seed)
    unit, means, spoken = unit_rows(rng.normal(size=(30, 4))), unit_rows(rng.normal(size=(3, 4))), np.ones(30)
    expected, others = shares(unit, means, spoken), np.arange(30) != 15
    spoken[15] = speech
    np.testing.assert_allclose(shares(unit, means, spoken)[others], expected[others])


@given(seed=st.integers(0, 1000), frames=st.integers(1, 6), voices=st.integers(1, 3))
@settings(max_examples=25)
def test_who_speaks_is_as_likely_as_all_ways_there_say(seed, frames, voices):
    near = np.random.default_rng(seed).uniform(0.01, 1.0, (frames, voices))
    expected = voice_posteriors(near, 0.9)
    np.testing.assert_allclose(staying(near), expected / expected.max(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("voices", [1, 2, 8, 40])
@pytest.mark.parametrize("frames", [63, 64, 65, 300])
def test_who_speaks_is_as_likely_as_all_frames_say(frames: int, voices: int):
    near = np.random.default_rng(1).uniform(0.01, 1.0, (frames, voices))
    near[100:] = 1.0  # from here on, only what was heard before tells
    moves = np.full((voices, voices), 0.1 / max(1, voices - 1))
    np.fill_diagonal(moves, 0.9)
    before, after = near.copy(), np.ones_like(near)
    for frame in range(1, frames):
        before[frame] *= before[frame - 1] / before[frame - 1].sum() @ moves
        after[-1 - frame] = moves @ (near[-frame] * after[-frame] / after[-frame].sum())
    likely = before * after
    np.testing.assert_allclose(staying(near), likely / likely.max(axis=1, keepdims=True), rtol=0.03)


@given(seed=st.integers(0, 1000), frame=st.integers(0, 399))
@settings(max_examples=25)
def test_what_is_further_off_than_two_blocks_says_nothing_of_who_speaks(seed, frame):
    near = np.random.default_rng(seed).uniform(0.01, 1.0, (400, 3))
    before = staying(near)
    near[frame] = [1.0, 0.01, 0.01]
    far = np.abs(np.arange(400) - frame) >= 128
    np.testing.assert_allclose(staying(near)[far], before[far], rtol=1e-6)


def test_what_is_shared_out_sums_up_to_the_speech():
    probs = np.random.default_rng(1).uniform(0, 1, (500, 4)).astype(np.float32)
    probs[:20] = 0.0
    count = np.arange(500) % 5.0
    found = shared_out(probs, count)
    np.testing.assert_allclose(found.sum(axis=1), count, atol=1e-5)
    assert found.min() >= 0
    assert found.max() <= 1

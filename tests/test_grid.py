"""Samples, frames and seconds: equal to counting sample by sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.grid import SAMPLE_RATE, FrameGrid

grids = st.builds(FrameGrid, st.just(100), st.integers(1, 5), st.integers(1, 4))


def test_the_models_step_is_eighty_milliseconds():
    grid = FrameGrid()
    assert (SAMPLE_RATE, grid.step_samples, grid.step_s) == (16_000, 1280, 0.08)


@given(grid=grids, samples=st.integers(0, 200))
def test_a_feature_frame_counts_when_its_hop_is_complete_and_an_output_frame_when_it_is_begun(grid, samples):
    complete = sum(1 for frame in range(samples + 1) if (frame + 1) * grid.hop_samples <= samples)
    begun = len({frame // grid.subsampling for frame in range(complete)})
    assert grid.feature_frames(samples) == complete
    assert grid.output_frames(samples) == begun


@given(grid=grids, start=st.integers(0, 60), length=st.integers(-5, 60), frames=st.integers(0, 12))
def test_coverage_counts_the_samples_of_an_interval_in_each_frame(grid, start, length, frames):
    end = start + length
    covered = [
        sum(start <= sample < end for sample in range(frame * grid.step_samples, (frame + 1) * grid.step_samples))
        for frame in range(frames)
    ]
    found = grid.coverage(start / 100, end / 100, frames)
    np.testing.assert_allclose(found, np.array(covered) / grid.step_samples)


@given(frame=st.integers(0, 10**7))
def test_frames_and_seconds_go_back_and_forth(frame):
    grid = FrameGrid()
    assert grid.samples(grid.seconds(frame)) == frame * grid.step_samples


@pytest.mark.parametrize("sizes", [(0, 160, 8), (16_000, 0, 8), (16_000, 160, 0), (16_000, 160, -1)])
def test_sizes_are_positive(sizes):
    with pytest.raises(ValueError, match="positive integers"):
        FrameGrid(*sizes)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sortformer.annotation import Turn
from sortformer.grid import FrameGrid
from sortformer.simulate.speech_activity import active_runs
from sortformer.simulate.targets import arrival_targets, bridged
from sortformer.targets import activity

GRID = FrameGrid()
_masks = arrays.arrays(bool, st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 60)))


@pytest.mark.parametrize("labelling", ["cover", "nemo"])
@pytest.mark.parametrize("subsampling", [8, 1])
@given(active=_masks)
def test_the_targets_are_those_of_the_turns(labelling, subsampling, active):
    grid = FrameGrid(subsampling=subsampling)
    targets, order = arrival_targets(active, grid, labelling)
    for row, mask in enumerate(active):
        turns = [
            Turn(start / 100 + 1e-6, end / 100 + 1e-6, str(slot))  # NeMo truncates: 0.29 * 100 is below 29
            for slot in range(len(mask))
            for start, end in zip(*active_runs(mask[slot]), strict=True)
        ]
        expected, speakers = activity(turns, targets.shape[1], len(mask), grid, labelling)
        assert np.array_equal(targets[row], expected)
        assert [str(slot) for slot in order[row][: len(speakers)]] == list(speakers)


def test_the_earlier_of_two_speakers_within_a_frame_comes_first():
    active = np.zeros((1, 2, 16), dtype=bool)
    active[0, 0, 3:12] = True
    active[0, 1, 2:12] = True
    assert arrival_targets(active, GRID)[1].tolist() == [[1, 0]]


@given(active=_masks, shortest=st.integers(0, 20))
def test_short_pauses_are_filled_and_nothing_else(active, shortest):
    filled = bridged(active, shortest)
    for before, after in zip(active.reshape(-1, active.shape[-1]), filled.reshape(-1, active.shape[-1]), strict=True):
        for hop, spoken in enumerate(after):
            earlier, later = np.flatnonzero(before[:hop]), np.flatnonzero(before[hop + 1 :])
            pause = len(earlier) and len(later) and hop + 1 + later[0] - earlier[-1] - 1 < shortest
            assert spoken == (before[hop] or bool(pause))

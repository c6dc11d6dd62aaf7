import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sortformer.annotation import Turn
from sortformer.grid import FrameGrid
from sortformer.simulate.labels import arrival_targets
from sortformer.simulate.speech_activity import active_runs
from sortformer.targets import activity

GRID = FrameGrid()
_masks = arrays.arrays(bool, st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 60)))


@given(_masks)
def test_the_targets_are_those_of_the_turns(active):
    targets, order = arrival_targets(active, GRID)
    for row, mask in enumerate(active):
        turns = [
            Turn(start / 100, end / 100, str(slot))
            for slot in range(len(mask))
            for start, end in zip(*active_runs(mask[slot]), strict=True)
        ]
        expected, speakers = activity(turns, targets.shape[1], len(mask), GRID)
        assert np.array_equal(targets[row], expected)
        assert [str(slot) for slot in order[row][: len(speakers)]] == list(speakers)


def test_the_earlier_of_two_speakers_within_a_frame_comes_first():
    active = np.zeros((1, 2, 16), dtype=bool)
    active[0, 0, 3:12] = True
    active[0, 1, 2:12] = True
    assert arrival_targets(active, GRID)[1].tolist() == [[1, 0]]

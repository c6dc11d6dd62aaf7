"""Dev sets; what they hold is tested with the simulator."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sortformer.grid import FrameGrid
from sortformer.simulate.dev_set import turns_of
from sortformer.targets import activity

drawn = arrays.arrays(np.float32, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.sampled_from([0, 1]))


@given(drawn)
def test_the_turns_of_an_activity_have_that_activity(matrix: np.ndarray):
    turns = turns_of(torch.from_numpy(matrix))
    for slot, column in enumerate(matrix.T):
        own = [turn for turn in turns if turn.speaker == f"speaker_{slot}"]
        assert np.array_equal(activity(own, len(matrix), 1, FrameGrid())[0][:, 0], column)
    assert len(turns) == np.count_nonzero(np.diff(matrix, axis=0, prepend=0) == 1)

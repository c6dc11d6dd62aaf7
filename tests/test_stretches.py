"""Stretches of a slot: equal to a loop over ticks for any cut, and none before ``earliest``."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from sortformer.config.postprocess import PostprocessConfig
from sortformer.stretches import Stretches
from tests.oracles.postprocess_loops import slot_segments
from tests.strategies import probabilities
from tests.test_postprocess import configs


@given(probabilities(max_slots=1), configs, st.lists(st.integers(0, 40), max_size=6))
@example(np.array([[1.0], [0.0], [1.0]]), PostprocessConfig(pad_on_s=0.002, pad_off_s=0.006), [])  # joined by rounding
def test_in_any_cut_the_stretches_are_those_of_the_loop(probs, config, cuts):
    state, now, found, before = Stretches(), 0, [], 0
    for part in np.split(probs[:, 0], sorted(cuts)):
        state, new = state.hear(config, part, now)
        assert all(start >= before for start, _ in new)
        found, now = [*found, *new.tolist()], now + len(part)
        before = state.earliest(config, now)
    state, new = state.end(config, now)
    assert all(start >= before for start, _ in new)
    found += new.tolist()
    assert state == Stretches()
    assert found == [[100 * start, 100 * end] for start, end in slot_segments(probs[:, 0], config, 1)]

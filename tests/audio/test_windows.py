"""Windows: every sample once, in order, with margins of context, and little memory at a time."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from sortformer.audio.windows import windows


@given(
    sizes=st.lists(st.integers(0, 60), max_size=12),
    length=st.integers(1, 50),
    margin=st.integers(0, 40),
)
@example(sizes=[30, 30], length=20, margin=5)
def test_every_sample_counts_once_and_sees_its_surroundings(sizes, length, margin):
    wave = np.arange(sum(sizes), dtype=np.float32)
    found = list(windows(np.split(wave, np.cumsum(sizes)[:-1]) if sizes else [], length, margin))
    own = [window.samples[window.before : window.before + window.length] for window in found]
    assert np.array_equal(np.concatenate(own), wave)
    assert (len(found) == 1) == (len(wave) <= length + margin)
    for window, first in zip(found, np.cumsum([0, *(len(part) for part in own)]), strict=False):
        low, high = max(0, first - margin), min(len(wave), first + window.length + margin)
        if len(found) > 1:
            assert np.array_equal(window.samples, wave[low:high])
        assert 0 < window.length <= length or len(found) == 1
    assert all(len(window.samples) <= length + 2 * margin for window in found) or len(found) == 1


def test_a_recording_that_fits_is_one_window():
    (found,) = windows([np.ones(30, np.float32), np.ones(25, np.float32)], 50, 5)
    assert (found.before, found.length, len(found.samples)) == (0, 55, 55)

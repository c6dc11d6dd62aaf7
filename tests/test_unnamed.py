"""Labels of unnamed speakers: they are known again, and names of people are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.unnamed import arrival_name, channel_name, is_label


@given(st.integers(0, 1000))
def test_names_by_arrival_are_known_again(position):
    assert is_label(arrival_name(position))
    assert is_label(channel_name(position))
    assert is_label(str(position))
    assert not is_label(f"{arrival_name(position)}a")


@pytest.mark.parametrize("name", ["", "chair", "speaker_", "speaker_one", "Speaker_1"])
def test_other_names_are_free_to_give(name):
    assert not is_label(name)

"""Events are played at the noted place and in the noted way, one by one or all at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer.simulate.events import Delivery, Note, noted, played
from tests.strategies import spread

ROWS, PATHS, LENGTH = 2, 3, 6000
SOUNDS = np.random.default_rng(0).integers(-20_000, 20_000, 9000).astype(np.int16)


@st.composite
def notes(draw) -> Note:
    speed = draw(st.sampled_from([1.0, 0.83, 1.27]))
    stored = draw(spread(1, 3000))
    at = draw(spread(0, LENGTH - 1))
    delivery = Delivery(draw(st.floats(0.1, 3)), draw(st.sampled_from([0.0, 0.5, -0.6])), speed)
    length = min(round(stored / speed), LENGTH - at)
    source = draw(spread(0, len(SOUNDS) - stored))
    return Note(draw(st.integers(0, ROWS - 1)), draw(st.integers(0, PATHS - 1)), source, stored, at, length, delivery)


@settings(max_examples=40)
@given(written=st.lists(notes(), max_size=8))
def test_all_at_once_is_event_by_event_to_rounding(written):
    events = noted(written)
    each = played(events, SOUNDS, ROWS, PATHS, LENGTH)
    together = played(events, torch.from_numpy(SOUNDS), ROWS, PATHS, LENGTH)
    assert each.shape == together.shape == (ROWS, PATHS, LENGTH)
    torch.testing.assert_close(together, each, rtol=0, atol=2e-5)


@settings(max_examples=20)
@given(written=st.lists(notes(), max_size=8))
def test_no_block_sounds_that_is_not_occupied(written):
    events = noted(written)
    tracks = played(events, SOUNDS, ROWS, PATHS, LENGTH)
    sounding = tracks.view(ROWS, PATHS, 12, 500).any(dim=3).numpy()
    assert not (sounding & ~events.occupied(ROWS, PATHS, 12, 500)).any()


def test_a_sound_is_heard_where_it_was_noted_and_as_loud():
    tracks = played(noted([Note(1, 2, 100, 1000, 2000, 1000, Delivery(0.5))]), SOUNDS, ROWS, PATHS, LENGTH)
    inside = slice(2080, 2920)  # without the fades
    torch.testing.assert_close(tracks[1, 2, inside], torch.from_numpy(SOUNDS[180:1020] / 65_536).float())
    tracks[1, 2, 2000:3000] = 0
    assert not tracks.any()


def test_sounds_on_one_track_add_up():
    note = Note(0, 0, 0, 1000, 0, 1000, Delivery())
    once, twice = (played(noted([note] * count), SOUNDS, 1, 1, LENGTH) for count in (1, 2))
    torch.testing.assert_close(twice, 2 * once)


@pytest.mark.parametrize("length", [0, 159, 160])
def test_what_is_too_short_to_fade_in_and_out_is_not_heard(length):
    heard = played(noted([Note(0, 0, 0, length, 0, length, Delivery())]), SOUNDS, 1, 1, LENGTH)
    assert bool(heard.any()) == (length == 160)

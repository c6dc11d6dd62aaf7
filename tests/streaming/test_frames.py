"""Frames of streams: parts of them, put together, are the whole again."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.streaming.frames import Frames

ROWS, DIM, SLOTS = 2, 3, 2


@given(lengths=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=ROWS, max_size=ROWS))
def test_what_was_cut_is_whole_again_when_joined(lengths):
    first, second = torch.tensor(lengths).T
    whole = Frames(torch.rand(ROWS, 9, DIM), torch.rand(ROWS, 9, SLOTS), first + second)
    joined = whole.part(torch.zeros_like(first), first, 5).then(whole.part(first, second, 4), 9)
    assert torch.equal(joined.length, whole.length)
    for found, expected in ((joined.emb, whole.emb), (joined.probs, whole.probs)):
        for row, length in enumerate(whole.length.tolist()):
            assert torch.equal(found[row, :length], expected[row, :length])
            assert not found[row, length:].any()


def test_no_frames_leave_others_as_they_are():
    some = Frames(torch.rand(ROWS, 4, DIM), torch.rand(ROWS, 4, SLOTS), torch.tensor([4, 4]))
    joined = Frames.none(ROWS, 6, DIM, SLOTS).then(some)
    assert torch.equal(joined.emb, some.emb)
    assert torch.equal(joined.probs, some.probs)

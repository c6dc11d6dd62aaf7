"""The bytes of a state are those of the state alone."""

import torch

from sortformer.streaming.snapshot import from_bytes, plain, to_bytes


def test_a_part_of_a_tensor_does_not_bring_the_whole():
    whole = torch.arange(100_000.0)
    data = to_bytes({"state": plain((whole[:10],))})
    assert len(data) < whole.nbytes / 10
    assert torch.equal(from_bytes(data)["state"][0], whole[:10])

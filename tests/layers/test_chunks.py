"""Feed-forward layers in chunks of frames: the same result in less memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sortformer.layers.chunks import in_chunks
from tests.layers.saved import bytes_kept
from tests.small_models import small_config, small_model


def part() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 64), nn.GELU(), nn.Linear(64, 4)).double()


def draw(frames: int) -> torch.Tensor:
    return torch.randn(2, frames, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@given(frames=st.integers(1, 30), size=st.none() | st.integers(1, 40), training=st.booleans())
@settings(max_examples=30)
def test_chunks_change_neither_result_nor_gradients(frames: int, size: int | None, training: bool):
    layer, x = part(), draw(frames).requires_grad_()
    with torch.set_grad_enabled(training):
        found, expected = in_chunks(layer, x, size), layer(x)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    if training:
        ours, plain = (torch.autograd.grad(out.square().sum(), [x, *layer.parameters()]) for out in (found, expected))
        torch.testing.assert_close(ours, plain, atol=1e-10, rtol=1e-10)


def test_what_is_inside_the_part_is_not_kept():
    layer, x = part(), draw(40).requires_grad_()
    assert bytes_kept(lambda: in_chunks(layer, x, 8)) < 0.2 * bytes_kept(lambda: layer(x))


@pytest.mark.parametrize("size", [1, 8])
def test_dropout_is_the_same_on_the_way_back(size: int):
    layer = nn.Dropout(0.5)
    x = torch.ones(1, 20, 4, requires_grad=True)
    out = in_chunks(layer, x, size)
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert grad.equal(out.detach())


@pytest.mark.parametrize("kind", ["transformer", "conformer"])
def test_no_feed_forward_of_a_model_gets_more_frames_than_a_chunk(kind: str):
    model, seen = small_model(small_config({"kind": kind, "ff_chunk_frames": 3}, {"ff_chunk_frames": 4})), []
    for layer in model.modules():
        if isinstance(layer, nn.Linear) and layer.out_features == model.config.encoder.ff_dim:
            layer.register_forward_hook(lambda *given: seen.append(given[-1].shape[1]))
    with torch.no_grad():
        model.forward_features(torch.zeros(1, 80, 16), torch.tensor([80]))
    assert set(seen) == {1, 2, 3, 4}  # ten frames are 3, 3, 3 and 1, or 4, 4 and 2

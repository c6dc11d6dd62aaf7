"""Subsampling by eight: ceil(T / 8) frames with a known reach, equal to loops, without leaks from padding."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.grid import FrameGrid
from sortformer.layers import DepthwiseStriding, FrameStacking
from sortformer.layers.subsampling import PART_FRAMES
from sortformer.masks import length_mask
from tests.oracles.blocks import striding
from tests.strategies import spread

MELS, DIM = 11, 6


def build(kind: str) -> DepthwiseStriding | FrameStacking:
    torch.manual_seed(0)
    return DepthwiseStriding(MELS, DIM, channels=4) if kind == "dw_striding" else FrameStacking(MELS, DIM)


def features(rows: int, frames: int) -> torch.Tensor:
    return torch.randn(rows, frames, MELS, generator=torch.Generator().manual_seed(frames))


kinds = pytest.mark.parametrize("kind", ["dw_striding", "stacking"])


@kinds
@given(samples=spread(160, 160 * 40))
def test_the_output_has_the_frames_that_the_grid_promises(kind, samples):
    grid = FrameGrid()
    frames = grid.feature_frames(samples)
    with torch.no_grad():
        out, lengths = build(kind)(features(1, frames), torch.tensor([frames]))
    assert out.shape == (1, grid.output_frames(samples), DIM)
    assert lengths.tolist() == [grid.output_frames(samples)]


@kinds
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4), extra=st.integers(0, 20))
def test_neither_padding_nor_other_rows_change_a_row(kind, lengths, extra):
    layer, feats = build(kind), features(len(lengths), max(lengths) + extra)
    padding = ~length_mask(torch.tensor(lengths), feats.shape[1])
    with torch.no_grad():
        out, counts = layer(feats.masked_fill(padding[..., None], torch.nan), torch.tensor(lengths))
        for row, length in enumerate(lengths):
            alone, count = layer(feats[row : row + 1, :length], torch.tensor([length]))
            assert counts[row] == count[0]
            torch.testing.assert_close(out[row, : counts[row]], alone[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("frames", [2 * PART_FRAMES, 2 * PART_FRAMES + 1, 2 * PART_FRAMES + 13])
def test_long_recordings_in_parts_give_what_they_give_at_once(frames):
    layer, feats, lengths = build("dw_striding"), features(2, frames), torch.tensor([frames, PART_FRAMES - 2])
    at_once, counts = layer(feats, lengths)  # for gradients
    seen = []
    layer.stem.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape[2]))
    with torch.no_grad():
        out, found = layer(feats, lengths)
    assert max(seen) <= PART_FRAMES + 8
    assert found.tolist() == counts.tolist()
    torch.testing.assert_close(out, at_once, atol=1e-5, rtol=0)


@pytest.mark.parametrize("frames", [1, 2, 7, 8, 9, 23, 24])
def test_striding_equals_loops_over_its_kernels(frames):
    layer, feats = build("dw_striding"), features(1, frames)
    with torch.no_grad():
        out, _ = layer(feats, torch.tensor([frames]))
    weights = {name: value.double().numpy() for name, value in layer.state_dict().items()}
    np.testing.assert_allclose(out[0].numpy(), striding(feats[0].double().numpy(), weights), atol=1e-5)


@pytest.mark.parametrize("frames", [1, 8, 20])
def test_stacking_puts_eight_frames_side_by_side(frames):
    layer, feats = build("stacking"), features(1, frames)
    with torch.no_grad():
        out, _ = layer(feats, torch.tensor([frames]))
    weight = layer.state_dict()["out.weight"].numpy()
    for t in range(out.shape[1]):
        group = np.zeros((8, MELS), dtype=np.float32)
        present = feats[0, 8 * t : 8 * t + 8].numpy()
        group[: len(present)] = present
        np.testing.assert_allclose(out[0, t].numpy(), weight @ group.reshape(-1), atol=1e-5)


@pytest.mark.parametrize(("kind", "before", "after"), [("dw_striding", 7, 7), ("stacking", 0, 7)])
def test_an_output_frame_sees_so_many_features_and_no_more(kind, before, after):
    """Counted from feature 8 t, the first of output frame t."""
    layer, feats = build(kind), features(1, 80).requires_grad_()
    out, _ = layer(feats, torch.tensor([80]))
    out[0, 5].sum().backward()
    assert feats.grad is not None
    seen = feats.grad[0].abs().sum(-1).nonzero().flatten() - 5 * 8
    assert seen.min() >= -before
    assert seen.max() <= after
    assert seen.max() - seen.min() >= before + after - 2  # a dead ReLU may hide an edge


def test_a_new_striding_stack_passes_its_input_on() -> None:
    """Full biases beside scaled-down weights once left 2 % of the input in the output: no voice could be learned."""
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stack = DepthwiseStriding(num_mels=80, dim=32, channels=16)
    feats = torch.randn(8, 64, 80, generator=generator)
    emb, _ = stack(feats, torch.full((8,), 64))
    varying = (emb - emb.mean(dim=(0, 1))).std()
    assert varying > 0.3 * emb.square().mean().sqrt()


def test_before_training_nothing_but_the_signal_comes_out():
    with torch.no_grad():
        out, _ = build("dw_striding")(torch.zeros(1, 16, MELS), torch.tensor([16]))
    assert not out.any()

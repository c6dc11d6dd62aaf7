"""Absolute positions, added to frames: the encodings of the papers, and a table of limited length."""

import numpy as np
import pytest
import torch

from sortformer.errors import InputError
from sortformer.position import CoordinatePosition, LearnedPosition, SinusoidalPosition
from tests.oracles.attention_loops import sinusoid

DIM = 6


def added(position, at: torch.Tensor) -> np.ndarray:
    frames = torch.randn(2, at.shape[1], DIM, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return (position.embed(frames, at) - frames).numpy()


def test_sinusoidal_positions_are_the_code_of_the_index():
    codes = added(SinusoidalPosition(), torch.arange(3, 8)[None])
    for row, t in np.ndindex(2, 5):
        np.testing.assert_allclose(codes[row, t], sinusoid(3 + t, DIM), atol=1e-5)


@pytest.mark.parametrize("depth", [0, 4])
def test_coordinates_are_the_codes_of_frame_and_layer(depth: int):
    codes = added(CoordinatePosition(depth), torch.arange(5)[None])
    for t in range(5):
        np.testing.assert_allclose(codes[0, t], sinusoid(t, DIM) + sinusoid(depth + 1, DIM), atol=1e-5)


def test_learned_positions_are_rows_of_a_table():
    position = LearnedPosition(DIM, 9)
    np.testing.assert_allclose(
        added(position, torch.tensor([[8, 0, 3]]))[1], position.table.detach()[[8, 0, 3]], atol=1e-6
    )


def test_beyond_its_table_a_learned_position_refuses_with_what_to_do():
    position = LearnedPosition(DIM, 4)
    assert added(position, torch.arange(4)[None]).shape == (2, 4, DIM)
    with pytest.raises(InputError, match="cover 4 frames, but the recording has 5"):
        added(position, torch.arange(5)[None])

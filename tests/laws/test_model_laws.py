"""Laws of every model: neither the batch nor its padding changes a recording."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small_models import SHAPES, small_model
from tests.strategies import spread

# In float64, as in float32 rounding reaches 5e-5 on a few hundred samples, which could mask a leak of padding.
MODELS = {name: small_model(config).double() for name, config in SHAPES.items()}
TOLERANCE = 3e-6  # expected arrivals are always computed in float32
every_shape = pytest.mark.parametrize("shape", SHAPES)


def waves(seed: int, count: int, samples: int) -> torch.Tensor:
    return 0.1 * torch.randn(count, samples, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@every_shape
@given(
    seed=st.integers(0, 1000),
    lengths=st.lists(spread(160, 24_000), min_size=1, max_size=3),
    extra=spread(0, 3_000),
)
@settings(max_examples=10)
def test_neither_its_batch_nor_its_padding_changes_a_recording(shape, seed, lengths, extra):
    model = MODELS[shape]
    batch = waves(seed, len(lengths), max(lengths) + extra)
    inside = torch.arange(batch.shape[1]) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        together = model(batch.masked_fill(~inside, torch.nan), torch.tensor(lengths))
        for row, length in enumerate(lengths):
            alone = model(batch[row : row + 1, :length])
            frames = alone.logits.shape[1]
            assert together.valid[row].tolist() == [t < frames for t in range(together.valid.shape[1])]
            torch.testing.assert_close(together.logits[row, :frames], alone.logits[0], atol=TOLERANCE, rtol=0)
            torch.testing.assert_close(together.emb[row, :frames], alone.emb[0], atol=TOLERANCE, rtol=0)
            for estimate, lonely in zip(together.estimates, alone.estimates, strict=True):
                torch.testing.assert_close(estimate[row, :frames], lonely[0], atol=TOLERANCE, rtol=0)

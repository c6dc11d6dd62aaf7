"""FAVOR+ features: closer to softmax the more there are, and stable for large inputs."""

import pytest
import torch

from sortformer.attention.favor import FavorAttention
from tests.masks import all_seen


def test_more_features_come_closer_to_softmax():
    query, key, value = (0.5 * torch.randn(3, 1, 2, 40, 8, generator=torch.Generator().manual_seed(3))).unbind()
    exact = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    errors = []
    for features in (8, 128, 2048):
        torch.manual_seed(0)
        errors.append((FavorAttention(8, features, "softmax", False)(*all_seen(query, key, value)) - exact).norm())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_queries_and_keys_stay_finite(causal: bool, dtype: torch.dtype):
    core = FavorAttention(8, 16, "softmax", causal)
    query, key, value = (x.to(dtype) for x in torch.randn(3, 1, 2, 300, 8))
    out = core(*all_seen(30 * query, 30 * key, value))
    assert torch.isfinite(out).all()
    assert out.abs().max() <= value.abs().max() * 1.1


def test_keys_of_little_weight_are_not_drowned_by_those_that_come_later():
    core = FavorAttention(8, 16, "softmax", causal=True)
    query, key, value = torch.randn(3, 1, 2, 40, 8, generator=torch.Generator().manual_seed(4)).unbind()
    key[:, :, :20] *= 30
    first = (x[:, :, :20] for x in (query, key, value))
    torch.testing.assert_close(core(*all_seen(query, key, value))[:, :, :20], core(*all_seen(*first)))

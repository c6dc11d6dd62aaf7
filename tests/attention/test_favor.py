"""What is random about FAVOR+: unbiased, better orthogonal than independent, and safe from what is large."""

import math

import pytest
import torch

from sortformer.attention import Context
from sortformer.attention.favor import FavorAttention, orthogonal_directions

DRAWS, DIM = 1500, 4


def kernel_estimates(orthogonal: bool) -> tuple[torch.Tensor, float]:
    """The estimates of exp(q . k) by as many features as channels, one a draw, and the truth."""
    generator = torch.Generator().manual_seed(0)
    q, k = torch.tensor([0.5, -0.5, 0.5, 0.1]), torch.tensor([0.3, -0.6, -0.1, 0.4])
    if orthogonal:
        w = torch.stack([orthogonal_directions(DIM, DIM, generator) for _ in range(DRAWS)])
    else:
        w = torch.randn(DRAWS, DIM, DIM, generator=generator)
    estimates = (w @ q - q @ q / 2 + w @ k - k @ k / 2).exp().mean(dim=1)
    return estimates, math.exp(float(q @ k))


def test_the_estimate_of_the_kernel_has_no_bias():
    estimates, truth = kernel_estimates(orthogonal=True)
    assert estimates.mean().item() == pytest.approx(truth, abs=4 * estimates.std().item() / DRAWS**0.5)


def test_orthogonal_directions_vary_less_than_independent_ones():
    assert kernel_estimates(orthogonal=True)[0].std() < kernel_estimates(orthogonal=False)[0].std()


def test_directions_are_orthogonal_in_groups_and_as_long_as_gaussian_ones():
    directions = orthogonal_directions(10, DIM, torch.Generator().manual_seed(1))
    for group in directions.split(DIM):
        products = group @ group.T
        torch.testing.assert_close(products, products.diagonal().diag(), atol=1e-5, rtol=0)
    many = orthogonal_directions(8000, DIM, torch.Generator().manual_seed(2))
    assert many.square().sum(dim=1).mean().item() == pytest.approx(DIM, rel=0.05)
    assert abs(many[:, 0].mean().item()) < 4 / 8000**0.5  # no entry of a column prefers a sign
    assert abs(many[::DIM, 0].mean().item()) < 4 / 2000**0.5


def test_more_features_come_closer_to_softmax():
    query, key, value = (0.5 * torch.randn(3, 1, 2, 40, 8, generator=torch.Generator().manual_seed(3))).unbind()
    exact = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    errors = []
    for features in (8, 128, 2048):
        torch.manual_seed(0)
        errors.append((FavorAttention(8, features, "softmax", False)(query, key, value, Context()) - exact).norm())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_directions_are_drawn_anew_by_a_generator():
    core = FavorAttention(8, 12, "softmax", True)
    before = core.directions.clone()
    core.redraw(torch.Generator().manual_seed(5))
    assert not torch.allclose(core.directions, before)
    torch.testing.assert_close(core.directions, orthogonal_directions(12, 8, torch.Generator().manual_seed(5)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_queries_and_keys_stay_finite(causal: bool, dtype: torch.dtype):
    core = FavorAttention(8, 16, "softmax", causal)
    query, key, value = (x.to(dtype) for x in torch.randn(3, 1, 2, 300, 8))
    out = core(30 * query, 30 * key, value, Context())
    assert torch.isfinite(out).all()
    assert out.abs().max() <= value.abs().max() * 1.1

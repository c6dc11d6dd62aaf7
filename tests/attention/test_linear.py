"""Linear attention far from zero, where elu(x) + 1 would cancel, and at zero, where its two sides meet."""

import torch

from sortformer.attention.linear import LinearAttention
from tests.masks import all_seen
from tests.oracles.core_loops import elu_kernel, kernel_attention


def test_small_features_are_not_lost_beside_one():
    query, key, value = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(1)).unbind()
    given = query - 20, key - 10, value
    found = LinearAttention(4, causal=False)(*all_seen(*given))
    expected = kernel_attention(*(x.double().numpy() for x in given), torch.ones(1, 9).numpy(), elu_kernel, False)
    torch.testing.assert_close(found.double(), torch.from_numpy(expected), atol=1e-6, rtol=1e-6)


def test_the_gradient_at_zero_is_that_of_both_sides():
    query = torch.zeros(3, requires_grad=True)
    LinearAttention(3, causal=False).query_features(query).sum().backward()
    torch.testing.assert_close(query.grad, torch.ones(3), atol=0, rtol=0)

"""Random features: unbiased, with less variance if orthogonal, and redrawn according to seed and step."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sortformer.attention import DrawnAttention, build_core, drawn, redraw
from sortformer.attention.drawn import orthogonal_directions
from sortformer.config.cores import Core, FavorCore, FullCore, RandomFeatureCore
from tests.masks import all_seen

DRAWS, DIM = 1500, 4
# Along one axis: a decomposition without random signs is biased towards one of its ends.
QUERY = KEY = torch.tensor([-0.7, 0.0, 0.0, 0.0])


def kernel_estimates(orthogonal: bool) -> tuple[torch.Tensor, float]:
    """Return estimates of exp(q . k) with as many features as channels, one per draw, and the true value."""
    generator = torch.Generator().manual_seed(0)
    q, k = QUERY, KEY
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
    assert abs(many[:, 0].mean().item()) < 4 / 8000**0.5  # the signs of a column are unbiased
    assert abs(many[::DIM, 0].mean().item()) < 4 / 2000**0.5


KINDS: list[type[FavorCore] | type[RandomFeatureCore]] = [FavorCore, RandomFeatureCore]


def stack(*configs: Core) -> nn.ModuleList:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.ModuleList(build_core(config, 2, DIM) for config in configs)


def directions(cores: nn.ModuleList) -> list[torch.Tensor]:
    return [core.directions.clone() for core in cores if isinstance(core, DrawnAttention)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(every=st.integers(0, 5), step=st.integers(0, 20))
def test_cores_draw_when_their_steps_are_over_and_at_no_other_time(kind, every: int, step: int):
    cores = stack(kind(features=6, redraw_every=every))
    before = directions(cores)
    redraw(cores, 3, step)
    due = every > 0 and step > 0 and step % every == 0
    assert directions(cores)[0].equal(before[0]) is not due


@settings(max_examples=10)
@given(seed=st.integers(0, 2**64 - 1), step=st.integers(1, 1000))
def test_a_draw_is_that_of_seed_step_and_place_whatever_has_been(seed: int, step: int):
    cores = stack(*[FavorCore(features=6, redraw_every=1)] * 2)
    other = copy.deepcopy(cores)
    redraw(other, seed, step + 1)
    torch.rand(1)  # other random numbers are drawn in between
    state = torch.get_rng_state()
    for each in (cores, other):
        redraw(each, seed, step)
    assert torch.get_rng_state().equal(state)
    one, two = directions(cores)
    assert one.equal(directions(other)[0])
    assert two.equal(directions(other)[1])
    assert not torch.allclose(one, two)
    redraw(cores, seed, step + 1)
    assert not torch.allclose(one, directions(cores)[0])


def test_one_who_never_draws_shifts_nobody():
    cores = stack(FavorCore(features=6), FavorCore(features=6, redraw_every=2))
    alone = stack(FavorCore(features=6, redraw_every=2))
    for each in (cores, alone):
        redraw(each, 1, 2)
    assert directions(cores)[1].equal(directions(alone)[0])


def test_what_was_drawn_is_named():
    assert drawn(stack(FullCore(), FavorCore(features=6))) == {"1.directions"}


def test_estimates_stay_unbiased_over_redraws():
    """The kernel of a core, averaged over the directions drawn step by step."""
    core = stack(FavorCore(features=DIM, redraw_every=1))
    q, k = QUERY, KEY
    estimates = []
    for step in range(1, DRAWS):
        redraw(core, 0, step)
        (w,) = directions(core)
        estimates.append((w @ q - q @ q / 2 + w @ k - k @ k / 2).exp().mean())
    found = torch.stack(estimates)
    assert found.mean().item() == pytest.approx(math.exp(float(q @ k)), abs=4 * found.std().item() / DRAWS**0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_features_of_a_core_follow_its_directions(kind):
    cores = stack(kind(features=6, redraw_every=1))
    query, key, value = torch.randn(3, 1, 2, 5, DIM, generator=torch.Generator().manual_seed(1)).unbind()
    before = cores[0](*all_seen(query, key, value))
    redraw(cores, 0, 1)
    assert not torch.allclose(cores[0](*all_seen(query, key, value)), before)

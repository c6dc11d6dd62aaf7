"""Reversible layers: output and gradients of two plain streams, in memory that does not grow with depth."""

import pytest
import torch
from torch import Tensor, nn

from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import Core, FullCore, SpanCore
from sortformer.layers import TransformerBlock
from sortformer.layers.reversible import ReversibleStack
from sortformer.layers.stack import Stack
from tests.layers.saved import bytes_kept
from tests.oracles.depth_loops import coupled

DIM = 8


def blocks(
    count: int, dropout: float = 0.0, position: str = "rope", core: Core | None = None
) -> list[TransformerBlock]:
    torch.manual_seed(0)
    made = [
        TransformerBlock(
            DIM,
            2,
            12,
            norm="pre",
            activation="gelu",
            attention=AttentionConfig(core or FullCore(), position),
            dropout=dropout,
        )
        for _ in range(count)
    ]
    for parameter in nn.ModuleList(made).parameters():
        nn.init.normal_(parameter, std=0.4)
    return made


def frames(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    x = torch.randn(2, 9, DIM, generator=torch.Generator().manual_seed(1), dtype=dtype)
    return x, torch.arange(9) < torch.tensor([[9], [6]])


def plain(stack: Stack, x: Tensor, valid: Tensor) -> Tensor:
    def parts(block):
        return (
            lambda x: block.attend(block.attention_norm(x), valid).out,
            lambda x: block.transform(block.feed_forward_norm(x)),
        )

    return coupled(x, [parts(block) for block in stack])


def gradients(stack: Stack, out: Tensor, x: Tensor) -> list[Tensor]:
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(out.dtype)
    return list(torch.autograd.grad((out * weights).sum(), [x, *stack.parameters()]))


@pytest.mark.parametrize("position", ["none", "rope", "xl", "shaw"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_output_and_gradients_are_those_of_two_plain_streams(position: str, dropout: float):
    stack = ReversibleStack(blocks(3, dropout, position)).double()
    x, valid = frames()
    x.requires_grad_()
    torch.manual_seed(3)
    found = stack(x, valid).out
    after = torch.rand(())
    torch.manual_seed(3)
    expected = plain(stack, x, valid)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    assert after.equal(torch.rand(()))
    wanted = gradients(stack, expected, x)
    state = torch.get_rng_state()
    for one, other in zip(gradients(stack, found, x), wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)
    assert torch.get_rng_state().equal(state)  # the backward pass draws no random numbers


def test_a_frozen_part_gets_no_gradient_and_the_others_theirs():
    stack = ReversibleStack(blocks(3)).double()
    x, valid = frames()
    stack(x, valid).out.square().sum().backward()
    free = {name: parameter.grad for name, parameter in stack.named_parameters()}
    stack.zero_grad()
    frozen = set(stack[1].attention.requires_grad_(False).parameters())
    stack(x, valid).out.square().sum().backward()
    for name, parameter in stack.named_parameters():
        assert parameter.grad is None if parameter in frozen else parameter.grad.equal(free[name])


def test_losses_of_its_layers_are_there_and_teach_what_they_teach_in_plain_ones():
    made = blocks(3, position="none", core=SpanCore(max_frames=4, ramp_frames=3, dynamic=True))
    stack, other = ReversibleStack(made).double(), Stack(made).double()
    x, valid = frames()
    x.requires_grad_()
    found = stack(x, valid)
    # In plain autograd: each block attends to the second stream, as it is before the block.
    one = two = x
    spans = []
    for block in made:
        attended = block.attend(block.attention_norm(two), valid)
        spans.append(attended.losses["span"])
        one = one + attended.out
        two = two + block.transform(block.feed_forward_norm(one))
    assert set(found.losses) == set(other(x, valid).losses) == {"span"}
    torch.testing.assert_close(found.losses["span"], sum(spans))
    ours, theirs = (
        torch.autograd.grad(
            out.square().sum() + 3 * span, [x, *stack.parameters()], retain_graph=True, allow_unused=True
        )
        for out, span in ((found.out, found.losses["span"]), ((one + two) / 2, sum(spans)))
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_float32_loses_little_on_the_way_back():
    stack = ReversibleStack(blocks(12))
    x, valid = frames(torch.float32)
    x.requires_grad_()
    for found, expected in zip(
        gradients(stack, stack(x, valid).out, x), gradients(stack, plain(stack, x, valid), x), strict=True
    ):
        assert (found - expected).norm() <= 1e-4 * expected.norm() + 1e-5


def test_half_precision_is_computed_again_as_it_was():
    stack = ReversibleStack(blocks(3))
    x, valid = frames(torch.float32)
    x.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        found = stack(x, valid).out
    with torch.autocast("cpu", torch.bfloat16):  # up to torch 2.10 it would reuse weights cast without gradient
        expected = plain(stack, x, valid)
    torch.testing.assert_close(found, expected)
    for one, other in zip(gradients(stack, found, x), gradients(stack, expected, x), strict=True):
        assert (one - other).norm() <= 0.02 * other.norm() + 1e-4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_of_half_precision_is_near_that_of_double(dtype: torch.dtype):
    stack = ReversibleStack(blocks(3)).to(dtype)
    x, valid = frames(dtype)
    x.requires_grad_()
    found = stack(x, valid).out
    assert found.dtype == dtype
    of_found = gradients(stack, found, x)
    stack, x = stack.double(), x.detach().double().requires_grad_()
    expected = plain(stack, x, valid)
    assert (found - expected).norm() <= 0.02 * expected.norm()
    for one, other in zip(of_found, gradients(stack, expected, x), strict=True):
        assert (one - other).norm() <= 0.05 * other.norm() + 1e-3


def test_what_is_kept_for_the_way_back_does_not_grow_with_the_number_of_layers():
    def kept(kind: type[Stack], layers: int) -> int:
        stack, (x, valid) = kind(blocks(layers)).double(), frames()
        x.requires_grad_()
        return bytes_kept(lambda: stack(x, valid).out)

    assert kept(ReversibleStack, 8) == kept(ReversibleStack, 2)
    assert kept(Stack, 8) > 3 * kept(Stack, 2) > 6 * kept(ReversibleStack, 8)


@pytest.mark.parametrize("kind", [Stack, ReversibleStack])
def test_stretches_without_a_layer_pass_the_frames(kind: type[Stack]):
    stack, (x, valid) = kind(blocks(2)).double(), frames()
    assert stack(x, valid, None, 1, 1).out.equal(x)


def test_a_stack_is_cut_anywhere():
    stack, (x, valid) = Stack(blocks(3)).double(), frames()
    assert stack(stack(x, valid, end=2).out, valid, begin=2).out.equal(stack(x, valid).out)

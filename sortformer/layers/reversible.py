"""Reversible layers: training memory that does not grow with depth."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sortformer.attention import LayerStep, add_losses
from sortformer.layers.stack import Stack
from sortformer.precision import wide

__all__ = ["ReversibleStack"]


class ReversibleStack(Stack):
    """Pre-norm Transformer blocks as couplings of two streams (Reformer: Kitaev et al., arXiv 2001.04451, section 3).

    Both streams start as the input, and their mean is the output. A block adds the attention of the second stream to
    the first, then the feed-forward of the first to the second. The backward pass recomputes both, with the same
    dropout, and subtracts them again. The layers between two estimates of a head have streams of their own.
    """

    def through(self, layers: range, x: Tensor, valid: Tensor, states: Sequence[Any] | None) -> LayerStep:
        """Run some layers on whole recordings; there are no ``states``."""
        del states
        blocks = [self[layer] for layer in layers]
        if not blocks:
            return LayerStep(x, None)
        # Sums of half precision cannot be subtracted again: the streams are float32 at least, whatever the weights are.
        x = wide(x)
        parameters = [parameter for block in blocks for parameter in block.parameters()]
        mean, names, *losses = _Couplings.apply(x, valid, blocks, *parameters)  # pyright: ignore[reportGeneralTypeIssues]
        return LayerStep(mean.to(parameters[0].dtype), None, dict(zip(names, losses, strict=True)))


class _Couplings(torch.autograd.Function):
    """All blocks as one autograd function, which saves the output of the last block alone.

    Returns the mean of the streams, the names of the losses, and the losses.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, valid: Tensor, blocks: Sequence[nn.Module], *parameters: Tensor
    ) -> tuple[Any, ...]:
        del parameters  # here so that their gradients are asked for
        one = two = x
        ctx.circumstances, losses = [], {}
        for block in blocks:
            attend, transform = _parts(block, valid)
            ctx.circumstances.append(_Circumstances.now(x))
            attended = attend(two)
            one, losses = one + attended.out, add_losses(losses, attended.losses)
            ctx.circumstances.append(_Circumstances.now(x))
            two = two + transform(one).out
        ctx.save_for_backward(one, two, valid)
        ctx.blocks, ctx.names = blocks, tuple(losses)
        return 0.5 * (one + two), ctx.names, *losses.values()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: None, *of_losses: Tensor) -> tuple[Tensor | None, ...]:
        one, two, valid = ctx.saved_tensors
        of_one = of_two = 0.5 * grad
        of_loss = dict(zip(ctx.names, of_losses, strict=True))
        circumstances, of_parameters = list(ctx.circumstances), []
        for block in reversed(ctx.blocks):
            parameters = list(block.parameters())
            attend, transform = _parts(block, valid)
            added, (back, *transforming) = _again(transform, one, of_two, of_loss, parameters, circumstances.pop())
            two, of_one = two - added, of_one + back
            added, (back, *attending) = _again(attend, two, of_one, of_loss, parameters, circumstances.pop())
            one, of_two = one - added, of_two + back
            of_parameters = [*map(_sum, attending, transforming), *of_parameters]
        return of_one + of_two, None, None, *of_parameters


Part = Callable[[Tensor], LayerStep]


def _parts(block: Any, valid: Tensor) -> tuple[Part, Part]:
    """Return the functions whose outputs a block adds to the first stream, and then to the second."""
    dtype = block.attention_norm.weight.dtype
    return (
        lambda x: block.attend(block.attention_norm(x.to(dtype)), valid),
        lambda x: LayerStep(block.transform(block.feed_forward_norm(x.to(dtype))), None),
    )


def _again(
    part: Part,
    x: Tensor,
    grad: Tensor,
    of_loss: Mapping[str, Tensor],
    parameters: Sequence[Tensor],
    circumstances: "_Circumstances",
) -> tuple[Tensor, tuple[Any, ...]]:
    """Recompute a part; return its output, and the gradients of its input and of the parameters.

    The gradient of a parameter that is frozen, or that the part does not use, is None.
    """
    x = x.detach().requires_grad_()
    with torch.enable_grad(), circumstances.restored():
        step = part(x)
    found, grads = (step.out, *step.losses.values()), (grad.to(step.out.dtype), *(of_loss[n] for n in step.losses))
    learning = [parameter for parameter in parameters if parameter.requires_grad]
    back, *of_learning = torch.autograd.grad(found, (x, *learning), grads, allow_unused=True)
    of = dict(zip(learning, of_learning, strict=True))
    return step.out.detach(), (back, *map(of.get, parameters))


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return one if other is None else other if one is None else one + other


@dataclass(frozen=True, slots=True)
class _Circumstances:
    """What the output of a part depends on beside its input: random generators and autocast."""

    device: torch.device
    generator: Tensor
    device_generator: Tensor | None
    autocast: torch.dtype | None

    @classmethod
    def now(cls, x: Tensor) -> "_Circumstances":
        kind = x.device.type
        on_device = None if kind == "cpu" else torch.get_device_module(kind).get_rng_state(x.device)
        autocast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        return cls(x.device, torch.get_rng_state(), on_device, autocast)

    @contextmanager
    def restored(self) -> Iterator[None]:
        kind, devices = self.device.type, [] if self.device_generator is None else [self.device]
        with torch.random.fork_rng(devices, device_type=kind):
            torch.set_rng_state(self.generator)
            if self.device_generator is not None:
                torch.get_device_module(kind).set_rng_state(self.device_generator, self.device)
            with torch.autocast(kind, self.autocast, enabled=self.autocast is not None):
                yield

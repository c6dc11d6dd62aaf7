"""The Universal Transformer: one layer applied repeatedly, with or without adaptive computation time."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sortformer.attention import LayerStep, add_losses
from sortformer.layers.stack import Stack
from sortformer.position.absolute import CoordinatePosition, sinusoids

__all__ = ["HaltingStack", "UniversalStack"]


class UniversalStack(Stack):
    """One block in place of ``layers`` (Dehghani et al., arXiv 1807.03819, section 2.1).

    Before each step the sinusoids of its number are added to the frames and, with ``coordinates``, those of the frames'
    positions (equation 6).
    """

    def __init__(self, block: nn.Module, layers: int, *, coordinates: bool) -> None:
        super().__init__([block])
        self.layers = layers
        self.coordinates = coordinates

    def run(self, layer: int, x: Tensor, valid: Tensor, state: Any = None) -> LayerStep:
        """Run the block on ``x`` (B, T, D) as the ``layer``-th, from 0."""
        if self.coordinates:
            x = CoordinatePosition(layer).embed(x, torch.arange(x.shape[1], device=x.device)[None])
        else:
            x = x + sinusoids(torch.tensor(layer + 1, device=x.device), x.shape[2]).to(x.dtype)
        return self[0](x, valid, state)


class HaltingStack(UniversalStack):
    """The same with adaptive computation time for each frame: section 2.2; Graves, arXiv 1603.08983, section 2.

    After each step a frame has a halting probability. It halts when the sum of these reaches ``halt_at``, or after
    ``layers`` steps; its last probability is then the remainder, 1 minus the sum of the earlier ones. The output is the
    mean of the frame's states, weighted by these probabilities. A halted frame keeps its state, which others may attend
    to. The loss "ponder" is the number of steps plus the remainder, averaged over the valid frames.
    """

    def __init__(self, block: nn.Module, layers: int, dim: int, *, coordinates: bool, halt_at: float) -> None:
        super().__init__(block, layers, coordinates=coordinates)
        self.halt_at = halt_at
        self.done_weight = nn.Parameter(torch.randn(dim) * dim**-0.5)
        self.done_bias = nn.Parameter(torch.ones(()))

    def through(self, layers: range, x: Tensor, valid: Tensor, states: Sequence[Any] | None) -> LayerStep:
        """Run some layers on whole recordings; there are no ``states``."""
        del states
        running, spent = valid, self.done_bias.new_zeros(x.shape[:2])
        out, ponder = torch.zeros_like(x), torch.zeros_like(spent)
        losses: list[Mapping[str, Tensor]] = []
        for layer in layers:
            step = self.run(layer, x, valid)
            losses.append(step.losses)
            x = torch.where(running[..., None], step.out, x)
            done = torch.sigmoid((x * self.done_weight).sum(dim=2).to(spent.dtype) + self.done_bias)
            rest = 1.0 - spent
            halting = running & ((spent + done >= self.halt_at) | (layer == layers[-1]))
            weight = torch.where(halting, rest, done)[..., None].to(x.dtype)
            out = torch.where(running[..., None], out + weight * x, out)
            ponder = ponder + running + torch.where(halting, rest, 0.0)
            running = running & ~halting
            spent = torch.where(running, spent + done, spent)
            if not running.any():
                break
        return LayerStep(out, None, add_losses({"ponder": ponder.sum() / valid.sum().clamp(min=1)}, *losses))

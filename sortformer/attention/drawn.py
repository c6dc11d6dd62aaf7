"""Kernels with random features: directions are drawn once, or redrawn at intervals in training."""

import torch
from torch import Tensor, nn

from sortformer.attention.kernel import KernelAttention
from sortformer.seeds import mixed_seed

__all__ = ["DrawnAttention", "drawn", "orthogonal_directions", "redraw"]

_PURPOSE = 1  # separates these draws from others seeded by the run and the step


class DrawnAttention(KernelAttention):
    """Random features along ``directions``; all draws are equally valid.

    A model may overfit to a single draw, so directions can be redrawn every ``redraw_every`` training steps (0: never):
    Choromanski et al., arXiv 2009.14794, section 4.2. They are saved with the weights.
    """

    def __init__(self, head_dim: int, count: int, redraw_every: int, causal: bool) -> None:
        super().__init__(causal)
        self.redraw_every = redraw_every
        self.directions: Tensor
        self.register_buffer("directions", orthogonal_directions(count, head_dim))

    def redraw(self, generator: torch.Generator) -> None:
        """Draw new directions."""
        count, dim = self.directions.shape
        self.directions.copy_(orthogonal_directions(count, dim, generator))


def redraw(model: nn.Module, seed: int, step: int) -> None:
    """Redraw the directions of the cores that are due before training ``step`` (from 0).

    A draw depends on the seed, the step and the index of the core among those that redraw: it is the same in every
    process, in a copy of the model, and in a resumed run.
    """
    cores = [module for module in model.modules() if isinstance(module, DrawnAttention) and module.redraw_every]
    for number, core in enumerate(cores):
        if step > 0 and step % core.redraw_every == 0:
            core.redraw(torch.Generator().manual_seed(mixed_seed(seed, step, number, _PURPOSE)))


def drawn(model: nn.Module) -> set[str]:
    """Return the names of the drawn tensors of a model, whose mean over several models is not a valid draw."""
    return {f"{name}.directions" for name, module in model.named_modules() if isinstance(module, DrawnAttention)}


def orthogonal_directions(count: int, dim: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw (count, dim) directions with the lengths of Gaussian vectors, orthogonal within each group of ``dim``.

    Orthonormal matrices by QR are uniform only after correction by the signs of R's diagonal: Mezzadri,
    arXiv math-ph/0609050, section 5. Without a generator, torch's global one is used.
    """
    groups = []
    for _ in range(-(-count // dim)):
        q, r = torch.linalg.qr(torch.randn(dim, dim, generator=generator))
        groups.append((q * r.diagonal().sign()).T)
    lengths = torch.randn(count, dim, generator=generator).norm(dim=1, keepdim=True)
    return torch.cat(groups)[:count] * lengths

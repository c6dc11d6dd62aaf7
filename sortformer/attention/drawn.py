"""Kernels whose features are random: directions that are drawn once, or anew now and then while a model is trained."""

import torch
from torch import Tensor, nn

from sortformer.attention.kernel import KernelAttention
from sortformer.seeds import mixed_seed

__all__ = ["DrawnAttention", "drawn", "orthogonal_directions", "redraw"]

_PURPOSE = 1  # tells these draws from others that are seeded by the run and the step


class DrawnAttention(KernelAttention):
    """Features of random ``directions``, any draw of which is as good as another.

    What a model learns with one draw alone it may learn about that draw, so they can be drawn anew every
    ``redraw_every`` steps of training (0: never): Choromanski et al., arXiv 2009.14794, section 4.2. They travel with
    the weights.
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
    """Let the cores of a model that are due before a ``step`` of training (from 0) draw.

    What they draw depends on the seed, the step and their place among those that ever do so: it is the same in every
    process, in a copy of the model, and in a run that was stopped and goes on.
    """
    cores = [module for module in model.modules() if isinstance(module, DrawnAttention) and module.redraw_every]
    for number, core in enumerate(cores):
        if step > 0 and step % core.redraw_every == 0:
            core.redraw(torch.Generator().manual_seed(mixed_seed(seed, step, number, _PURPOSE)))


def drawn(model: nn.Module) -> set[str]:
    """Return the names of the tensors of a model that were drawn: their mean over several models is no draw."""
    return {f"{name}.directions" for name, module in model.named_modules() if isinstance(module, DrawnAttention)}


def orthogonal_directions(count: int, dim: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw (count, dim) directions as long as Gaussian vectors are, orthogonal within each group of ``dim``.

    Orthonormal matrices by QR are uniform only once the signs of R's diagonal are taken out: Mezzadri,
    arXiv math-ph/0609050, section 5. Without a generator it draws as modules do when they are made.
    """
    groups = []
    for _ in range(-(-count // dim)):
        q, r = torch.linalg.qr(torch.randn(dim, dim, generator=generator))
        groups.append((q * r.diagonal().sign()).T)
    lengths = torch.randn(count, dim, generator=generator).norm(dim=1, keepdim=True)
    return torch.cat(groups)[:count] * lengths

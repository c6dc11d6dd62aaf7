"""Frame-wise modules, a chunk of frames at a time: less memory, the same result."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

__all__ = ["in_chunks"]


def in_chunks(part: Callable[[Tensor], Tensor], x: Tensor, frames: int | None) -> Tensor:
    """Apply a frame-wise ``part`` to ``x`` (B, T, D), ``frames`` at a time (None: all at once).

    Kitaev et al., Reformer, arXiv 2001.04451, section 3, "chunking". In training, activations are recomputed
    in the backward pass, so that there too the memory is that of one chunk.
    """
    if frames is None or x.shape[1] <= frames:
        return part(x)
    pieces = x.split(frames, dim=1)
    if not torch.is_grad_enabled():
        return torch.cat([part(piece) for piece in pieces], dim=1)
    return torch.cat([checkpoint(part, piece, use_reentrant=False) for piece in pieces], dim=1)

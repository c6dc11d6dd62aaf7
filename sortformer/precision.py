"""How many digits numbers have to have."""

import torch
from torch import Tensor

__all__ = ["wide"]


def wide(x: Tensor) -> Tensor:
    """Return numbers as float32, or as they are where that is wider: halves lose sums, exponentials and places."""
    return x.to(torch.promote_types(x.dtype, torch.float32))

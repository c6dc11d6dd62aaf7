"""How many digits numbers have to have."""

import torch
from torch import Tensor

__all__ = ["finest", "wide"]

_WITHOUT_FLOAT64 = ("mps",)


def wide(x: Tensor) -> Tensor:
    """Return numbers as float32, or as they are where that is wider: halves lose sums, exponentials and places."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def finest(device: torch.device) -> torch.dtype:
    """Return float64, or float32 for a device that has none, which is Apple's MPS: there, angles hours on are rough."""
    return torch.float32 if device.type in _WITHOUT_FLOAT64 else torch.float64

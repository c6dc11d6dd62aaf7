"""The least floating-point precision of sums, exponentials and positions."""

import torch
from torch import Tensor

__all__ = ["finest", "wide"]

_WITHOUT_FLOAT64 = ("mps",)


def wide(x: Tensor) -> Tensor:
    """Return ``x`` in float32, or as it is if wider: sums, exponentials and positions need more than half precision."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def finest(device: torch.device) -> torch.dtype:
    """Return float64, or float32 on devices without it (Apple's MPS), where angles are inexact hours into a stream."""
    return torch.float32 if device.type in _WITHOUT_FLOAT64 else torch.float64

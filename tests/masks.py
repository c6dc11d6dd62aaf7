"""Arguments without padding: every frame is valid."""

import torch
from torch import Tensor

from sortformer.attention import Context

__all__ = ["all_seen", "unpadded"]


def unpadded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return frames (B, T, D) and the mask (B, T) of all of them, as layers take them."""
    return x, torch.ones(x.shape[:2], dtype=torch.bool)


def all_seen(query: Tensor, key: Tensor, value: Tensor, past: int = 0) -> tuple[Tensor, Tensor, Tensor, Context]:
    """Return query, key (B, H, S, d) and value with a context in which every key is valid, as cores take them."""
    return query, key, value, Context(torch.ones(len(key), key.shape[2], dtype=torch.bool), past)

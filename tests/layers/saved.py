"""Bytes that a computation saves for the backward pass."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["bytes_kept"]


def bytes_kept(run: Callable[[], Tensor]) -> int:
    """Return the bytes of all distinct tensors that autograd saves in a computation, without the weights."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if not (tensor.is_leaf and tensor.requires_grad):
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = run()
    del result
    return sum(kept.values())

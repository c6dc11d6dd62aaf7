"""Fingerprints of models: embeddings and states made with one model must not be used with another."""

import hashlib
import json
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from sortformer.config.strict import to_dict

__all__ = ["identity"]


# The last result for each module, and its inputs: a server needs it for every session that it moves.
_known: WeakKeyDictionary[nn.Module, tuple[Any, str]] = WeakKeyDictionary()


def identity(module: nn.Module, *configs: Any) -> str:
    """Return the SHA-256 of the configs and weights of a module, independent of the device."""
    said = json.dumps([to_dict(config) for config in configs], sort_keys=True)
    tensors = sorted(module.state_dict().items())
    # Not by tensor version: inference tensors have none, and writes through .data or numpy do not change it.
    asked = said, [(name, tensor.data_ptr(), *_sums(tensor)) for name, tensor in tensors]
    if module in _known and _known[module][0] == asked:
        return _known[module][1]
    digest = hashlib.sha256(said.encode())
    for name, tensor in tensors:
        digest.update(name.encode())
        digest.update(tensor.float().cpu().contiguous().numpy().tobytes())
    _known[module] = asked, digest.hexdigest()
    return digest.hexdigest()


def _sums(tensor: Tensor) -> tuple[float, float]:
    """Return the sum of the values, which detects changes, and a sum weighted by index, which detects moved values."""
    values = tensor.detach().float().flatten()
    places = torch.arange(1, len(values) + 1, dtype=values.dtype, device=values.device)
    return values.sum().item(), torch.dot(values, places).item()

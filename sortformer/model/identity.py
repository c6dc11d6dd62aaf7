"""Which model it is: what was made with one must not be read with another, whose numbers mean something else."""

import hashlib
import json
from typing import Any

from torch import nn

from sortformer.config.strict import to_dict

__all__ = ["identity"]


def identity(module: nn.Module, *configs: Any) -> str:
    """Return the configs and the weights of a module in one line: the SHA-256 of both, whatever the device."""
    digest = hashlib.sha256(json.dumps([to_dict(config) for config in configs], sort_keys=True).encode())
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()

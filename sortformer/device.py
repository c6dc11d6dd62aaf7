"""The device that runs the model."""

import os
from functools import cache

import torch

from sortformer.errors import InputError

__all__ = ["device_named"]


def device_named(name: str | torch.device = "auto") -> torch.device:
    """Return the device of that name: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.

    ``auto`` is the first CUDA device, or the CPU if there is none; Apple's MPS must be requested by name, because no
    tests run on it. Processes forked from here on have one thread.

    Raises:
        InputError: when there is no such device, or this machine or build of torch lacks it.
    """
    _let_forks_work()
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cpu", "cuda", "mps"):
        raise InputError(f"there is no device {name!r}; choose auto, cpu, cuda or mps")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device {name!r}: torch {torch.__version__} finds {torch.cuda.device_count()} CUDA devices here"
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise InputError(f"device {name!r}: torch {torch.__version__} finds no MPS (Apple) device here")
    return device


@cache
def _let_forks_work() -> None:
    """Limit forked processes to one thread: GNU OpenMP's others do not survive a fork, and waiting for them hangs."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))

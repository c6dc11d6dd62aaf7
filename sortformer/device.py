"""Which processor runs the model."""

import os

import torch

from sortformer.errors import InputError

__all__ = ["device_named"]

if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads that GNU's OpenMP still counts on, and would wait for them for ever.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def device_named(name: str = "auto") -> torch.device:
    """Return the device of that name: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.

    ``auto`` is the first CUDA device, or the CPU where there is none; Apple's MPS has to be asked for by name, because
    it is not among the machines that the tests run on.

    Raises:
        InputError: when there is no such device, or this machine or this build of torch does not have it.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
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

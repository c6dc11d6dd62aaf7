"""Compare the CPU with another device."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.elsewhere.device import PLACE, elsewhere, near

__all__ = ["both", "gradients"]


def both(run: Callable[..., Any], *given: Any, float64: bool = False) -> None:
    """Run a function on the CPU and elsewhere, and assert that the result elsewhere is there, and equal.

    Elsewhere has no ``float64`` unless requested.
    """
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = run(*(_moved(each, torch.device("cpu")) for each in given))
    with elsewhere(float64=float64):
        found = run(*(_moved(each, PLACE) for each in given))
    largest = max((float(each.abs().max()) for each in expected if isinstance(each, Tensor)), default=0.0)
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, Tensor):
            assert one.device == PLACE
            # Some gradients are sums that are zero except for rounding.
            torch.testing.assert_close(near(one), other, atol=1e-6 * largest, rtol=1e-4)
        elif isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, atol=1e-4)
        else:
            assert one == other


def _moved(given: Any, device: torch.device) -> Any:
    if isinstance(given, nn.Module):
        return copy.deepcopy(given).to(device)
    return given.detach().to(device).requires_grad_(given.requires_grad) if isinstance(given, Tensor) else given


def gradients(outputs: list[Tensor], module: nn.Module, *inputs: Tensor) -> list[Tensor | None]:
    """Return the outputs, and the gradients of the sum of their squares."""
    sum(output.square().sum() for output in outputs if output.requires_grad).backward()
    return [*(output.detach() for output in outputs), *(each.grad for each in [*module.parameters(), *inputs])]

"""A simulated device, whose tensors are in CPU memory but cannot be mixed with CPU tensors.

Test machines have no accelerator, users do. Operations on tensors of two devices fail there, and so they do here; so
does double precision where the device has none, like Apple's. The CPU does the computation: rounding,
synchronisation and missing kernels of a real device are not simulated.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.library import Library, fallthrough_kernel
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend as _register

from sortformer import precision
from sortformer.precision import finest

__all__ = ["PLACE", "elsewhere", "near"]

_register("elsewhere")
_MODULE = torch.get_device_module("elsewhere")
_MODULE.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
_MODULE.get_rng_state = lambda _device: torch.get_rng_state()  # its random numbers are drawn by the CPU
_MODULE.set_rng_state = lambda state, _device: torch.set_rng_state(state)
_AUTOCAST = Library("_", "IMPL", "AutocastPrivateUse1")
_AUTOCAST.fallback(fallthrough_kernel)  # autocast changes no types there

PLACE = torch.device("elsewhere", 0)

_aten = torch.ops.aten
_COPIES = (_aten.copy_.default, _aten._to_copy.default)
_INDEXED = (_aten.index.Tensor, _aten._unsafe_index.Tensor, _aten.index_put_.default, _aten.index_put.default)


class _Elsewhere(Tensor):
    """A tensor of the simulated device, which shares the memory of the CPU tensor ``near``."""

    near: Tensor

    @staticmethod
    def __new__(cls, near: Tensor) -> "_Elsewhere":
        if near.dtype in (torch.float64, torch.complex128) and finest(PLACE) is not torch.float64:
            raise TypeError(f"the device has no {near.dtype}")
        made = Tensor._make_wrapper_subclass(
            cls, near.size(), near.stride(), near.storage_offset(), dtype=near.dtype, device=PLACE
        )
        made.near = near
        return made

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return _computed(op, args, kwargs or {})

    def __repr__(self) -> str:
        return f"elsewhere: {self.near!r}"

    def __reduce_ex__(self, protocol: int) -> Any:
        return self.near.__reduce_ex__(protocol)

    def tolist(self) -> list[Any]:
        return self.near.tolist()


class _Generator(torch.Generator):
    """A generator of either device."""

    place: torch.device

    def __new__(cls, device: str | torch.device = "cpu") -> "_Generator":
        made = super().__new__(cls)
        made.place = torch.device(device)
        return made

    @property
    def device(self) -> torch.device:
        return self.place


class _Mode(TorchDispatchMode):
    """Intercept also the creation of tensors."""

    def __torch_dispatch__(self, op: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return _computed(op, args, kwargs or {})


@contextmanager
def elsewhere(*, float64: bool = True) -> Iterator[None]:
    """Provide the device, :data:`PLACE`, with or without double precision."""
    lifted = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)
    without = precision._WITHOUT_FLOAT64 if float64 else (*precision._WITHOUT_FLOAT64, PLACE.type)
    try:
        with (
            patch.object(torch, "Generator", _Generator),
            patch.object(precision, "_WITHOUT_FLOAT64", without),
            _Mode(),
        ):
            yield
    finally:
        torch._C._set_only_lift_cpu_tensors(lifted)


def near(values: Any) -> Any:
    """Return values with tensors of the device replaced by their CPU tensors."""
    return tree_map_only(_Elsewhere, lambda tensor: tensor.near, values)


def _computed(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    # Inference tensors cannot take another's memory; leaving inference mode must not re-enable autograd.
    with torch.inference_mode(False), torch._C._AutoDispatchBelowAutograd():
        if op is _aten._fused_sdp_choice.default:
            return 0  # unfused attention, each operation of which is dispatched here
        asked = kwargs.get("device")
        far = [value for value in tree_leaves((args, kwargs)) if isinstance(value, _Elsewhere)]
        if far and op not in _COPIES:
            _check(op, args, kwargs)
        if op is _aten._thnn_fused_lstm_cell.default:
            found = _lstm_cell(*near(args))
        else:
            on_cpu = {} if asked is None else {"device": torch.device("cpu")}
            found = op(*near(args), **near(kwargs) | on_cpu)
        if op is _aten.copy_.default:
            stays = isinstance(args[0], _Elsewhere)
        else:
            stays = bool(far) if asked is None else torch.device(asked).type == PLACE.type
        if not stays:
            return found
        known = {id(tensor.near): tensor for tensor in far}
        made = tree_map_only(
            Tensor, lambda tensor: known[id(tensor)] if id(tensor) in known else _Elsewhere(tensor), found
        )
        return return_and_correct_aliasing(op, args, kwargs, made) if far and asked is None else made


def _check(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse, as a device does, CPU tensors other than scalars and indices."""
    values = [args[0], *args[2:3]] if op in _INDEXED else tree_leaves((args, kwargs))
    for value in values:
        if isinstance(value, Tensor) and not isinstance(value, _Elsewhere):
            single = value.dim() == 0 and (torch.Tag.pointwise in op.tags or op in _INDEXED)
            if not single:
                raise RuntimeError(f"{op} wants all on one device, and {tuple(value.shape)} is on the CPU")


def _lstm_cell(
    inputs: Tensor, hidden: Tensor, cell: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute one step of an LSTM, which has another kernel on CPUs; the last tensor is for a backward pass, unused."""
    gates = inputs + hidden + (0 if input_bias is None else input_bias) + (0 if hidden_bias is None else hidden_bias)
    enter, forget, new, leave = gates.chunk(4, dim=1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell, gates

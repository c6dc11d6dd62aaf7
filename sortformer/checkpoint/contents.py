"""The contents of a checkpoint of any format, and its model."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from sortformer.checkpoint.keys import KeyTable, check_weights
from sortformer.config.model import ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.model import Sortformer

__all__ = ["Checkpoint", "blank", "build", "not_finite"]


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A model in evaluation mode, the post-processing tuned for it, and the licence of its weights where known."""

    model: Sortformer
    postprocess: PostprocessConfig
    licence: str | None = None


def build(path: Path, config: ModelConfig, weights: Mapping[str, Tensor], table: KeyTable | None = None) -> Sortformer:
    """Build the model of ``config`` with the weights of the file ``path``, renamed by ``table``, in float32.

    No memory is allocated for the model before the weights are known to match its config.

    Raises:
        InputError: if weights and config do not match exactly, the config asks for too large a model, or a weight is
            not a plain array of finite numbers.
    """
    _check_plain(path, weights)
    needed = _needed(path, config)
    if table is None:
        check_weights(path, weights, needed)
    else:
        weights = table.to_ours(path, weights, needed)
    # Copies: tensors read from a safetensors file are mapped to it, and another process may overwrite it.
    weights = {name: tensor.to(needed[name].dtype, copy=True).contiguous() for name, tensor in weights.items()}
    if broken := not_finite(weights):
        raise InputError(
            f"{path} holds weights that are not finite ({broken[0]}): it is damaged, or its training diverged"
        )
    model = blank(config)
    # Assigned, not copied: otherwise the largest of these models would take its half a gigabyte twice.
    model.load_state_dict(weights, assign=True)
    return model.eval()


def not_finite(weights: Mapping[str, Tensor]) -> list[str]:
    """Return the names of the tensors with a value that is not finite in float32, as which models are loaded."""
    return [name for name, tensor in weights.items() if not bool(torch.isfinite(tensor.float()).all())]


_NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64)


def _check_plain(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not dense arrays of numbers, or that are larger than their storage (expanded views)."""
    for name, tensor in weights.items():
        dense = tensor.layout is torch.strided and tensor.device.type == "cpu" and tensor.dtype in _NUMBERS
        if not dense or tensor.nbytes > tensor.untyped_storage().nbytes():
            kind = str(tensor.dtype).removeprefix("torch.")
            raise InputError(f"'{name}' in {path} is not a plain array of numbers (a {kind} tensor)")


def _needed(path: Path, config: ModelConfig) -> dict[str, Tensor]:
    """Return the names and shapes of a model's weights, as tensors without memory."""
    try:
        with torch.device("cpu"), _WithoutDraws(_WITHOUT_MEMORY):
            return Sortformer(config).float().state_dict()
    except (RuntimeError, TypeError) as error:  # the number of bytes overflows
        raise InputError(f"the config of {path} describes a model that is too large") from error


# Of some initialisers PyTorch reports the call itself, of others only the in-place draw that they make.
_DRAWS = (nn.init.kaiming_uniform_, nn.init.uniform_, nn.init.normal_, Tensor.uniform_, Tensor.normal_)


# The functions that allocate weights. (PyTorch's context of the meta device covers torch.arange too, and takes two
# seconds for it; that of the CPU takes 0.1 s for 110 million weights.)
_WITHOUT_MEMORY = (torch.empty, torch.zeros, torch.ones, torch.full, torch.randn, torch.eye)


def blank(config: ModelConfig) -> Sortformer:
    """Return a model on the CPU without random initialisation, whose weights are to be replaced, in float32."""
    with torch.device("cpu"), _WithoutDraws():  # not where, or in the precision, in which other models are created
        return Sortformer(config).float()


class _WithoutDraws(TorchFunctionMode):
    """Skip random initialisation: drawing 10^8 numbers takes seconds. ``shaped`` functions allocate no memory."""

    def __init__(self, shaped: Collection[Callable[..., Tensor]] = ()) -> None:
        super().__init__()
        self.shaped = shaped

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func in _DRAWS:
            return args[0] if args else named["tensor"]
        if func in self.shaped:
            named = {**named, "device": "meta"}
        return func(*args, **named)

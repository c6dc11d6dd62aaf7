"""Our own checkpoints: a folder with ``config.json`` and ``model.safetensors``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as save_weights

from sortformer.checkpoint.contents import Checkpoint, build, not_finite
from sortformer.checkpoint.files import read_weights
from sortformer.config.model import ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import as_postprocess
from sortformer.config.strict import from_dict, to_dict
from sortformer.draft import drafted
from sortformer.errors import ConfigError, InputError
from sortformer.model import Sortformer, check_model

__all__ = ["EMBEDDED", "EMBEDDED_NAME", "FORMAT", "described", "read_native", "save"]

EMBEDDED = Path(__file__).parents[1] / "weights"
"""The folder of the default model, inside the package."""

EMBEDDED_NAME = "embedded"
"""Its name as a source of ``load``."""

FORMAT = "sortformer/1"

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The contents of ``config.json``."""

    format: str
    model: ModelConfig = field(default_factory=ModelConfig)
    postprocess: PostprocessConfig = field(default_factory=PostprocessConfig)
    licence: str | None = None


def save(
    folder: str | Path,
    model: Sortformer,
    postprocess: PostprocessConfig | None = None,
    dtype: torch.dtype = torch.float32,
    licence: str | None = None,
) -> None:
    """Write a model and its config, each file atomically.

    ``dtype`` (float16, bfloat16, float32 or float64) is that of the file; ``licence`` is that of the weights.

    Raises:
        InputError: if an argument is of another kind, or a weight is not finite in ``dtype``, or in the float32 of a
            loaded model, so that every file written can be loaded.
        OSError: if a file cannot be written.
    """
    check_model(model, training=True)
    postprocess = None if postprocess is None else as_postprocess(postprocess)
    if dtype not in _DTYPES:
        raise InputError(f"weights are saved as float16, bfloat16, float32 or float64 of torch, got dtype={dtype!r}")
    if not isinstance(licence, str | None):
        raise InputError(f"the licence of weights must be a str, got {licence!r}")
    weights = {
        name: (tensor.to(dtype) if tensor.is_floating_point() else tensor).contiguous()
        for name, tensor in model.state_dict().items()
    }
    if broken := not_finite(weights):
        kind = str(dtype).removeprefix("torch.")
        raise InputError(f"the weights in {broken[0]} diverged, or are too large for {kind}: they are not finite")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = json.dumps(described(model.config, postprocess, licence), indent=2)
    with drafted(folder / "model.safetensors") as draft:
        draft.write_bytes(save_weights(weights))  # safetensors' own writer makes files that only the owner can read
    with drafted(folder / "config.json") as draft:
        draft.write_text(config + "\n", encoding="utf-8")


def described(config: ModelConfig, postprocess: PostprocessConfig | None, licence: str | None) -> dict[str, Any]:
    """Return the contents of ``config.json`` for a model."""
    values: dict[str, Any] = {"format": FORMAT, "model": to_dict(config)}
    if postprocess is not None:
        values["postprocess"] = to_dict(postprocess)
    if licence is not None:
        values["licence"] = licence
    return values


def read_native(folder: Path, values: Mapping[str, Any]) -> Checkpoint:
    """Read the model of ``folder``, whose ``config.json`` holds ``values``, in float32.

    Raises:
        InputError: if a file is absent or damaged, or if weights and config do not match exactly.
    """
    try:
        told = from_dict(ModelFile, values)
    except (ConfigError, OverflowError) as error:
        raise InputError(
            f"{folder / 'config.json'} does not describe a model that this version of the toolkit supports: {error}"
        ) from error
    path = folder / "model.safetensors"
    return Checkpoint(build(path, told.model, read_weights(path)), told.postprocess, told.licence)

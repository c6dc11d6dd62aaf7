"""Native checkpoints: a folder with ``config.json`` and ``model.safetensors``."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from sortformer.config.model import ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.errors import ConfigError, InputError
from sortformer.model import Sortformer

__all__ = ["EMBEDDED", "load", "save"]

EMBEDDED = Path(__file__).parent / "weights"
"""The folder of the default model, inside the package."""

_FORMAT = "sortformer/1"


def save(
    folder: str | Path,
    model: Sortformer,
    postprocess: PostprocessConfig | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a model and its config; ``dtype`` float16 halves the file."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.to(dtype).contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    config: dict[str, Any] = {"format": _FORMAT, "model": to_dict(model.config)}
    if postprocess is not None:
        config["postprocess"] = to_dict(postprocess)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def load(folder: str | Path) -> tuple[Sortformer, PostprocessConfig]:
    """Return the model of a folder, in float32 and evaluation mode, and its post-processing.

    Raises:
        InputError: if a file is absent or damaged, or if weights and config do not fit each other exactly.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"there is no model folder {folder}; give a folder with config.json and model.safetensors")
    values = _read_config(folder / "config.json")
    try:
        model = Sortformer(from_dict(ModelConfig, values.get("model", {}), "model"))
        postprocess = from_dict(PostprocessConfig, values.get("postprocess", {}), "postprocess")
    except ConfigError as error:
        raise InputError(f"{folder / 'config.json'} does not describe a model: {error}") from error
    weights = _read_weights(folder / "model.safetensors")
    _check_weights(folder / "model.safetensors", weights, model.state_dict())
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return model.eval(), postprocess


def _read_config(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        raise InputError(f"{path} is not the config of a sortformer model (its format is not '{_FORMAT}')")
    return values


def _read_weights(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise InputError(f"cannot read {path}: no such file") from error
    except (SafetensorError, OSError) as error:
        raise InputError(f"the weights {path} are damaged ({error}); fetch or install them again") from error


def _check_weights(path: Path, found: dict[str, Tensor], needed: dict[str, Tensor]) -> None:
    missing, extra = sorted(needed.keys() - found.keys()), sorted(found.keys() - needed.keys())
    wrong = sorted(name for name in needed.keys() & found.keys() if needed[name].shape != found[name].shape)
    for names, fault in ((missing, "lack"), (extra, "have the unknown"), (wrong, "have another shape for")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise InputError(f"the weights {path} do not fit their config: they {fault} '{names[0]}'{more}")

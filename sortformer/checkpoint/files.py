"""The two files of a model folder, ``config.json`` and ``model.safetensors``, read with errors that name them."""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sortformer.errors import InputError, first_line, refusal
from sortformer.json_values import json_object

__all__ = ["read_config", "read_weights"]


def read_config(path: Path) -> dict[str, Any]:
    """Return the values of a JSON file.

    Raises:
        InputError: if it cannot be read or is not a JSON object.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unread(path, error) from error
    return json_object(content, path, "the config of a model")


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name.

    Raises:
        InputError: if it is absent, cannot be read or is damaged.
    """
    try:
        with path.open("rb"):  # safetensors reports a file that cannot be opened as absent
            pass
    except OSError as error:
        raise _unread(path, error) from error
    try:
        return load_file(path)
    except (SafetensorError, OSError, TypeError) as error:  # TypeError: sizes beyond 64 bits
        raise InputError(
            f"the weights {path} are damaged ({first_line(error)}); download or install them again"
        ) from error


def _unread(path: Path, error: OSError) -> InputError:
    """Return the error for one of the two files that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError(
            f"{path.parent} holds no model: it has no {path.name} (a model is config.json and "
            "model.safetensors, or one .nemo file)"
        )
    return InputError(f"cannot read {path}: {refusal(error)}")

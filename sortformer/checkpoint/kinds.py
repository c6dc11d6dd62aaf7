"""The format of the model in a folder or a repository.

A repository may hold a model twice: as NeMo's archive, and in the format of another library, which is not supported.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sortformer.checkpoint.files import read_config
from sortformer.checkpoint.native import FORMAT
from sortformer.checkpoint.nemotron import MODEL_TYPE

__all__ = ["is_known", "model_in"]


def is_known(config: Mapping[str, Any]) -> bool:
    """Return whether a ``config.json`` is in our own format, or in that of Nemotron 3 on Hugging Face."""
    return config.get("format") == FORMAT or config.get("model_type") == MODEL_TYPE


def model_in(folder: Path) -> Mapping[str, Any] | Path | None:
    """Return what a folder's model is: the values of a known ``config.json``, else the only archive, else None.

    Raises:
        InputError: if there is a ``config.json`` that cannot be read.
    """
    config, archives = folder / "config.json", list(folder.glob("*.nemo"))
    if config.exists() and is_known(values := read_config(config)):
        return values
    return archives[0] if len(archives) == 1 else None

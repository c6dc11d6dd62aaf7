"""What a folder, or a repository, with a ``config.json`` is a model of.

A repository may hold one model twice: as NeMo's archive, and in the form of another library, which is not read here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sortformer.checkpoint.files import read_config
from sortformer.checkpoint.native import FORMAT
from sortformer.checkpoint.nemotron import MODEL_TYPE

__all__ = ["is_known", "model_file"]


def is_known(config: Mapping[str, Any]) -> bool:
    """Say whether the values of a ``config.json`` are of our own format, or of Nemotron 3 as Hugging Face has it."""
    return config.get("format") == FORMAT or config.get("model_type") == MODEL_TYPE


def model_file(folder: Path) -> Path | None:
    """Return by what the model of a folder is read: ``config.json``, or else the one archive; None: there is neither.

    Raises:
        InputError: if there is a ``config.json`` that cannot be read.
    """
    config, archives = folder / "config.json", sorted(folder.glob("*.nemo"))
    if config.exists() and is_known(read_config(config)):
        return config
    return archives[0] if len(archives) == 1 else None

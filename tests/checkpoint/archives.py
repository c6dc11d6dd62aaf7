"""Valid and invalid ``.nemo`` archives for tests, made from a recorded one, and the errors that they cause."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor

from sortformer import checkpoint
from sortformer.errors import InputError
from tests.checkpoint.goldens import GOLDEN


def recorded_parts(path: Path = GOLDEN / "tiny_v1.nemo") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the configuration and the weights of an archive written by NeMo."""
    with tarfile.open(path) as archive:
        found = {Path(member.name).name: archive.extractfile(member) for member in archive if member.isreg()}
        values = yaml.safe_load(found["model_config.yaml"])
        weights = torch.load(io.BytesIO(found["model_weights.ckpt"].read()), weights_only=True)
    return values, dict(weights)


def pickled(weights: Any) -> bytes:
    """Return the bytes that ``torch.save`` writes."""
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    return buffer.getvalue()


def write_tar(path: Path, members: Mapping[str, bytes | tarfile.TarInfo], mode: str = "w") -> Path:
    """Write a tar of files, or of given members without content (links)."""
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_archive(path: Path, values: Any, weights: Any, mode: str = "w") -> Path:
    """Write a ``.nemo`` archive of a configuration and weights."""
    text = yaml.safe_dump(values).encode()
    return write_tar(path, {"model_config.yaml": text, "model_weights.ckpt": pickled(weights)}, mode)


def refusal(path: Path) -> str:
    """Return the error message for a checkpoint, which is one sentence and names the file."""
    with pytest.raises(InputError) as caught:
        checkpoint.load(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(path) in sentence
    return sentence

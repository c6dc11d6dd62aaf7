"""Paths of the recorded models, and the activations of ours."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sortformer.attention import LayerStep
from sortformer.model import Sortformer

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "models"
SHARED = Path(__file__).resolve().parents[2] / "../shared/data/golden"


def shared(name: str) -> Path:
    """Return a file or folder of the shared goldens, or skip the test."""
    if not (SHARED / name).exists():
        pytest.skip(f"../shared/data/golden/{name} is absent")
    return SHARED / name


def activations(model: Sortformer, feats: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Return the activations of a model's parts for features (B, T, M), under the names of the recordings."""
    found: dict[str, Tensor] = {}

    def record(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            if isinstance(output, LayerStep):
                found[name] = output.out
            else:
                found[name] = output[0] if isinstance(output, tuple) else output

        return hook

    parts = {"pre_encode": model.encoder.pre_encode}
    parts |= {f"conformer{index}": block for index, block in enumerate(model.encoder.blocks)}
    parts |= {f"transformer{index}": block for index, block in enumerate(model.head.blocks)}
    if model.head.upsampling is not None:
        parts["encoder_hidden"] = model.head.upsampling
    hooks = [part.register_forward_hook(record(name)) for name, part in parts.items()]
    with torch.inference_mode():
        output = model.forward_features(feats, lengths)
    for hook in hooks:
        hook.remove()
    return found | {"probs": output.probs, "logits": output.logits}

"""A pre-norm Transformer block, one recording at a time in float64."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tests.oracles.attention_loops import attention
from tests.oracles.blocks import layer_norm
from tests.oracles.gates import gru_gate

__all__ = ["branches", "gated", "linear"]

Branch = Callable[[np.ndarray], np.ndarray]


def linear(x: np.ndarray, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def branches(weights: Mapping[str, np.ndarray], heads: int) -> tuple[Branch, Branch]:
    """Return the attention and feed-forward branches for frames (T, D), from the weights of one block by name."""

    def attend(x: np.ndarray) -> np.ndarray:
        x = layer_norm(x, weights["attention_norm.weight"], weights["attention_norm.bias"])
        query, key, value = (
            linear(x, weights, f"attention.{name}").reshape(1, len(x), heads, -1).transpose(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        mixed = attention(query, key, value, lambda *_: True)[0].transpose(1, 0, 2).reshape(x.shape)
        return linear(mixed, weights, "attention.out")

    def transform(x: np.ndarray) -> np.ndarray:
        x = layer_norm(x, weights["feed_forward_norm.weight"], weights["feed_forward_norm.bias"])
        hidden = [[h * 0.5 * (1 + math.erf(h / math.sqrt(2))) for h in row] for row in linear(x, weights, "expand")]
        return linear(np.array(hidden), weights, "contract")

    return attend, transform


def gated(weights: Mapping[str, np.ndarray], name: str, x: np.ndarray, branch: np.ndarray) -> np.ndarray:
    """Return frames (T, D) combined with their branch by the gates of that name."""
    of_branch = dict(zip("rzg", np.split(weights[f"{name}.of_branch.weight"], 3), strict=True))
    of_frames = dict(zip("rz", np.split(weights[f"{name}.of_frames.weight"], 2), strict=True))
    of_frames["g"] = weights[f"{name}.of_kept.weight"]
    return np.array([gru_gate(x[t], branch[t], of_branch, of_frames, weights[f"{name}.bias"]) for t in range(len(x))])

"""Subsampling and Conformer blocks written out in float64 numpy, one frame and one kernel position at a time."""

from collections.abc import Mapping

import numpy as np

__all__ = ["conformer_convolution", "feed_forward", "layer_norm", "striding", "swish"]

Weights = Mapping[str, np.ndarray]


def swish(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


def feed_forward(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    """LayerNorm, linear, Swish, linear (Gulati et al., figure 4, without dropout)."""
    x = layer_norm(x, weights[f"{name}.0.weight"], weights[f"{name}.0.bias"])
    x = swish(x @ weights[f"{name}.1.weight"].T + weights[f"{name}.1.bias"])
    return x @ weights[f"{name}.4.weight"].T + weights[f"{name}.4.bias"]


def conformer_convolution(x: np.ndarray, weights: Weights, norm: str) -> np.ndarray:
    """The convolution module (Gulati et al., figure 2) of one recording (T, D), all frames valid."""
    x = layer_norm(x, weights["input_norm.weight"], weights["input_norm.bias"])
    x = x @ weights["expand.weight"].T + weights["expand.bias"]
    half = x.shape[1] // 2
    x = x[:, :half] / (1 + np.exp(-x[:, half:]))
    kernel = weights["depthwise.weight"][:, 0]
    reach = kernel.shape[1] // 2
    mixed = np.zeros_like(x)
    for t in range(len(x)):
        mixed[t] = weights["depthwise.bias"]
        for k in range(kernel.shape[1]):
            if 0 <= t + k - reach < len(x):
                mixed[t] += kernel[:, k] * x[t + k - reach]
    if norm == "layer":
        mixed = layer_norm(mixed, weights["norm.weight"], weights["norm.bias"])
    else:
        scale = weights["norm.weight"] / np.sqrt(weights["norm.running_var"] + 1e-5)
        mixed = (mixed - weights["norm.running_mean"]) * scale + weights["norm.bias"]
    return swish(mixed) @ weights["out.weight"].T + weights["out.bias"]


def striding(feats: np.ndarray, weights: Weights) -> np.ndarray:
    """The dw_striding subsampling of one recording (T, M): (ceil(T / 8), D)."""
    image = np.maximum(_stride(feats[None], weights["stem.weight"], weights["stem.bias"]), 0)
    for stage in range(2):
        depthwise, bias = weights[f"depthwise.{stage}.weight"], weights[f"depthwise.{stage}.bias"]
        planes = [_stride(image[c : c + 1], depthwise[c : c + 1], bias[c : c + 1])[0] for c in range(len(image))]
        pointwise = weights[f"pointwise.{stage}.weight"][:, :, 0, 0]
        image = np.einsum("oc,ctf->otf", pointwise, np.stack(planes))
        image = np.maximum(image + weights[f"pointwise.{stage}.bias"][:, None, None], 0)
    flat = np.stack([image[:, t].reshape(-1) for t in range(image.shape[1])])
    return flat @ weights["out.weight"].T + weights["out.bias"]


def _stride(image: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A 3 x 3 convolution with stride 2 and one zero around the image."""
    _, frames, bins = image.shape
    padded = np.zeros((len(image), frames + 2, bins + 2))
    padded[:, 1:-1, 1:-1] = image
    out = np.zeros((len(weight), (frames + 1) // 2, (bins + 1) // 2))
    for o in range(len(weight)):
        for t in range(out.shape[1]):
            for f in range(out.shape[2]):
                out[o, t, f] = bias[o] + np.sum(weight[o] * padded[:, 2 * t : 2 * t + 3, 2 * f : 2 * f + 3])
    return out

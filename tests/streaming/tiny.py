"""Tiny models with random weights, whose probabilities come and go."""

import numpy as np
import torch

from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.model import Sortformer

__all__ = ["noise", "tiny_model"]


def tiny_model(
    seed: int = 0, *, gain: float = 20.0, num_slots: int = 3, subsampling: str = "dw_striding"
) -> Sortformer:
    """Return a model in evaluation mode; ``gain`` scales its logits, centred on the noise of :func:`noise`."""
    config = ModelConfig(
        FeatureConfig(num_mels=16),
        EncoderConfig(subsampling=subsampling, subsampling_channels=4, dim=16, layers=1, heads=2, ff_dim=16),
        HeadConfig(num_slots=num_slots, dim=16, layers=2, heads=2, ff_dim=16, estimate_layers=(1,)),
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model = Sortformer(config).eval()
        out = model.head.out
        out.weight.mul_(gain)
        out.bias.sub_(model(torch.from_numpy(noise(32_000))[None]).logits[0].median(dim=0).values)
    return model


def noise(samples: int, seed: int = 0) -> np.ndarray:
    """Return noise (N,) whose level and colour change every 50 to 500 ms."""
    rng = np.random.default_rng(seed)
    parts, count = [], 0
    while count < samples:
        part = rng.standard_normal(rng.integers(800, 8_000))
        part = np.convolve(part, rng.uniform(-1, 1, 3), mode="same") * rng.choice([0.001, 0.05, 0.2])
        parts.append(part)
        count += len(part)
    return np.concatenate([np.zeros(0), *parts])[:samples].astype(np.float32)

"""Tiny models with random weights and varying probabilities."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from sortformer.config.attention import AttentionConfig
from sortformer.config.combiners import CombinerFixedCore, CombinerHierarchicalCore
from sortformer.config.cores import (
    FavorCore,
    FixedCore,
    FullCore,
    LinearCore,
    LocalCore,
    LogsparseCore,
    SpanCore,
)
from sortformer.config.memories import CompressiveMemory, NearestMemory, TransformerXLMemory
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.model import Sortformer
from tests.small_models import small_config, small_model

__all__ = [
    "CONFIG",
    "MEMORY_CHUNK",
    "MODEL",
    "REMEMBERING",
    "WAVE",
    "hearing_model",
    "noise",
    "normalized",
    "remembering_model",
    "tiny_model",
]

MEMORY_CHUNK = 5


def tiny_model(
    seed: int = 0, *, gain: float = 20.0, num_slots: int = 3, subsampling: str = "dw_striding"
) -> Sortformer:
    """Return a model in evaluation mode; ``gain`` scales its logits, centred on the noise of :func:`noise`."""
    config = ModelConfig(
        FeatureConfig(num_mels=16),
        EncoderConfig(subsampling=subsampling, subsampling_channels=4, dim=16, layers=1, heads=2, ff_dim=16),
        HeadConfig(num_slots=num_slots, dim=16, layers=2, heads=2, ff_dim=16, estimate_layers=(1,)),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _centred(Sortformer(config).eval(), gain)


def hearing_model(*logits: float, model: Sortformer | None = None) -> Sortformer:
    """Return a model in evaluation mode, if not given a tiny one, whose slots have constant logits."""
    model = model or tiny_model(num_slots=len(logits))
    with torch.no_grad():
        model.head.out.weight.zero_()
        model.head.out.bias.copy_(torch.tensor(logits))
    return model


def _xl(frames: int) -> TransformerXLMemory:
    return TransformerXLMemory(frames=frames, chunk_frames=MEMORY_CHUNK)


def _compressive(**options: Any) -> CompressiveMemory:
    return CompressiveMemory(frames=6, compressed_frames=4, ratio=2, chunk_frames=MEMORY_CHUNK, **options)


def _model(*layers: AttentionConfig, encoder: dict[str, Any] | None = None, **head: Any) -> ModelConfig:
    """Return a model with one encoder layer and two head layers; the last attention is repeated for missing ones."""
    first, *rest = layers
    return small_config(
        {"layers": 1, "conv_causal": True, "attention": (first,)} | (encoder or {}),
        {"layers": 2, "estimate_layers": (0, 1), "attention": tuple(rest or (first,))} | head,
    )


_KNN = NearestMemory(frames=12, neighbours=3, chunk_frames=MEMORY_CHUNK)
_SUMS = (
    AttentionConfig(FavorCore(features=8, causal=True), "rope"),
    AttentionConfig(LinearCore(causal=True)),
    AttentionConfig(FavorCore(features=8, causal=True), "sinusoidal", _KNN),
)

REMEMBERING = {
    "xl": _model(AttentionConfig(position="rope", memory=_xl(8)), AttentionConfig(position="xl", memory=_xl(3))),
    "compressive": _model(
        AttentionConfig(FavorCore(features=8), "rope", _compressive(loss="attention")),
        AttentionConfig(position="shaw", memory=_compressive(compression="most_used")),
        AttentionConfig(position="alibi", memory=_compressive(compression="max")),
    ),
    "knn": _model(AttentionConfig(position="rope", memory=_KNN), _SUMS[2], AttentionConfig(memory=_xl(4))),
    "sums": _model(*_SUMS[:2]),
    "window": _model(
        AttentionConfig(LocalCore(window_frames=4, causal=True), "rope"),
        AttentionConfig(LocalCore(window_frames=3, causal=True)),
        AttentionConfig(CombinerHierarchicalCore(block_frames=2, fan_out=2, causal=True), "rope"),
    ),
    "combiner": _model(
        AttentionConfig(CombinerFixedCore(block_frames=4, causal=True), "rope"),
        encoder={"kind": "transformer"},
        permutation="none",
    ),
    "sparse": _model(
        AttentionConfig(FixedCore(block_frames=4, summary_frames=1, causal=True), "rope"),
        AttentionConfig(LogsparseCore(causal=True)),
        AttentionConfig(SpanCore(max_frames=4, ramp_frames=2, causal=True), "rope"),
    ),
    "long": _model(AttentionConfig(FullCore(causal=True), "rope", _xl(1_000)), permutation="label"),
}
"""A model of each kind with a state in its layers; the output of the last five does not depend on cuts."""


def remembering_model(kind: str, gain: float = 5.0) -> Sortformer:
    """Return a model in evaluation mode with varying estimates and open permutation encodings."""
    model = small_model(REMEMBERING[kind])
    with torch.no_grad():
        for index, estimate in enumerate(model.head.estimates):
            # Not at an occurring value: rounding must not decide which classes have arrived.
            seen = model(torch.from_numpy(noise(32_000))[None]).estimates[index][0]
            estimate.bias.sub_(seen.quantile(0.8, dim=0) + 0.05)  # pyright: ignore[reportCallIssue]
    return _centred(model, gain)


@torch.no_grad()
def _centred(model: Sortformer, gain: float) -> Sortformer:
    out = model.head.out
    out.weight.mul_(gain)
    out.bias.sub_(model(torch.from_numpy(noise(32_000))[None]).logits[0].median(dim=0).values)
    return model


def normalized(kind: str, tilt_range: tuple[float, float] | None = None) -> Sortformer:
    """Return the tiny model with features of a kind of normalisation, and equalised or not."""
    plain = tiny_model()
    features = replace(plain.config.features, normalize=kind, tilt_range=tilt_range)
    model = Sortformer(replace(plain.config, features=features)).eval()
    model.load_state_dict(plain.state_dict())
    return model


def noise(samples: int, seed: int = 0) -> np.ndarray:
    """Return noise (N,) whose level and spectrum change every 50 to 500 ms."""
    rng = np.random.default_rng(seed)
    parts, count = [], 0
    while count < samples:
        part = rng.standard_normal(rng.integers(800, 8_000))
        part = np.convolve(part, rng.uniform(-1, 1, 3), mode="same") * rng.choice([0.001, 0.05, 0.2])
        parts.append(part)
        count += len(part)
    return np.concatenate([np.zeros(0), *parts])[:samples].astype(np.float32)


MODEL = tiny_model()
CONFIG = StreamConfig(5, 2, fifo_frames=6, update_period_frames=5, speaker_cache=SpeakerCacheConfig(14, 1))
"""Steps of five frames with a cache that is full after a second."""
WAVE = noise(40_000, seed=3)

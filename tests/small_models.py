"""Models of a few thousand weights in every architecture that the configs allow, with all gates open."""

from dataclasses import replace
from typing import Any, Literal

import torch

from sortformer.config.attention import AttentionConfig
from sortformer.config.depth import ReversibleDepth, UniversalDepth
from sortformer.config.memories import CompressiveMemory, TransformerXLMemory
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.model import Sortformer

__all__ = ["SHAPES", "small_config", "small_model"]


def small_config(
    encoder: dict[str, Any] | None = None,
    head: dict[str, Any] | None = None,
    normalize: Literal["none", "fixed"] = "none",
) -> ModelConfig:
    """Return a tiny config; ``encoder`` and ``head`` override a Conformer with design A."""
    return ModelConfig(
        FeatureConfig(num_mels=16, normalize=normalize),
        replace(
            EncoderConfig(subsampling_channels=4, dim=16, layers=2, heads=2, ff_dim=24, conv_kernel=5, dropout=0.0),
            **(encoder or {}),
        ),
        replace(
            HeadConfig(num_slots=3, dim=16, layers=3, heads=2, ff_dim=24, estimate_layers=(1, 2), dropout=0.0),
            **(head or {}),
        ),
    )


SHAPES = {
    "local": small_config({"window_frames": 3}),
    "xl-batch-norm": small_config({"position": "xl", "conv_norm": "batch", "input_scale": True}, {"norm": "post"}),
    "shaw-soft": small_config({"position": "shaw"}, {"permutation": "soft", "position": "shaw"}),
    "stacking-softsort": small_config(
        {"kind": "transformer", "subsampling": "stacking"},
        {"permutation": "softsort", "kernel": "learned", "gate": "channel", "position": "none"},
    ),
    "memory": small_config(
        {
            "conv_causal": True,
            "attention": (
                AttentionConfig(
                    position="rope", memory=CompressiveMemory(frames=4, compressed_frames=3, ratio=2, chunk_frames=5)
                ),
            ),
        },
        {"attention": (AttentionConfig(position="xl", memory=TransformerXLMemory(frames=6, chunk_frames=5)),)},
    ),
    "narrowband": small_config({"narrowband_channels": 3}, normalize="fixed"),
    "label": small_config(head={"permutation": "label", "estimate_layers": (0, 2)}),
    "gru": small_config({"residual": "gru"}, {"residual": "gru"}),
    "reversible": small_config(
        {"kind": "transformer", "subsampling": "stacking", "depth": ReversibleDepth(), "ff_chunk_frames": 3},
        {"depth": ReversibleDepth()},
    ),
    "universal": small_config(
        {"depth": UniversalDepth(halting=True), "layers": 3, "ff_chunk_frames": 3},
        {"depth": UniversalDepth(), "position": "coordinates"},
    ),
    "none": small_config(head={"permutation": "none", "estimate_layers": ()}),
}


def small_model(config: ModelConfig, seed: int = 0) -> Sortformer:
    """Return a model in evaluation mode with open gates of its permutation encodings, which are closed initially."""
    torch.manual_seed(seed)
    model = Sortformer(config).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("gate"):
            torch.nn.init.ones_(parameter)
        if ".estimates." in name and name.endswith("weight"):
            torch.nn.init.normal_(parameter, std=1.0)  # so that some classes arrive, at different frames
    return model

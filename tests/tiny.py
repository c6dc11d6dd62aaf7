"""A model small enough for tests, whose slots always speak or never do."""

from pathlib import Path

import torch

from sortformer import checkpoint
from sortformer.config.model import EncoderConfig, HeadConfig, ModelConfig
from sortformer.model import Sortformer

__all__ = ["SLOTS", "tiny_model"]

SLOTS = 4


def tiny_model(folder: Path, speaking: int = 2) -> Path:
    """Write a checkpoint whose first ``speaking`` slots are always far above a half, and the others far below."""
    encoder = EncoderConfig(subsampling_channels=2, dim=8, layers=1, heads=2, ff_dim=8, conv_kernel=3, dropout=0.0)
    head = HeadConfig(num_slots=SLOTS, dim=8, layers=2, heads=2, ff_dim=8, estimate_layers=(0, 1), dropout=0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Sortformer(ModelConfig(encoder=encoder, head=head))
    with torch.no_grad():
        model.head.out.weight.mul_(0.1)
        model.head.out.bias.copy_(torch.where(torch.arange(SLOTS) < speaking, 3.0, -3.0))
    checkpoint.save(folder, model)
    return folder

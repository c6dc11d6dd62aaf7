"""Recordings on which two implementations of a model are compared."""

from collections.abc import Iterable

import numpy as np
import pytest
import torch
from torch import Tensor

from sortformer.audio import read
from tests.checkpoint.goldens import SHARED

RATE = 16_000
TOLERANCE = 1e-4


def speech(seconds: float) -> Tensor:
    """Return real meetings, concatenated, as (1, N), or skip the test without them."""
    clips = sorted((SHARED.parent / "real_dev").glob("*.flac"))
    if not clips:
        pytest.skip("../shared/data/real_dev is absent")
    wave = np.concatenate([read(clip) for clip in clips[: int(seconds // 30) + 1]])
    return torch.from_numpy(wave[: round(seconds * RATE)])[None]


def recordings(kind: str, seconds: float) -> tuple[Tensor, Tensor]:
    """Return waves (B, N) and their lengths (B,): "noise", "speech", or both in a "ragged" batch."""
    count = round(seconds * RATE)
    noise = 0.1 * torch.randn(1, count, generator=torch.Generator().manual_seed(2))
    if kind == "noise":
        return noise, torch.tensor([count])
    if kind == "speech":
        return speech(seconds), torch.tensor([count])
    lengths = torch.tensor([count, count * 2 // 3 + 77, count // 4])
    wave = torch.cat([speech(seconds), noise, speech(seconds)])
    return wave * (torch.arange(count) < lengths[:, None]), lengths


def largest_difference(ours: Tensor, theirs: Tensor, lengths: Tensor | None = None) -> float:
    """Return the largest difference over the valid frames (B,) of (B, T, D); NaN if either has one."""
    if lengths is not None:
        valid = torch.arange(int(lengths.max())) < lengths[:, None]
        ours, theirs = (values[:, : valid.shape[1]][valid] for values in (ours, theirs))
    assert ours.shape == theirs.shape
    return float((ours - theirs).abs().max()) if theirs.numel() else 0.0


def assert_agree(title: str, differences: Iterable[tuple[str, float]]) -> None:
    """Print the largest difference by kind of part ("conformer" for all of its layers); fail unless all are < 1e-4."""
    worst: dict[str, Tensor] = {}
    for name, difference in differences:
        kind = name.rstrip("0123456789")
        # Unlike Python's, this maximum propagates NaN.
        worst[kind] = torch.maximum(worst.get(kind, torch.tensor(0.0)), torch.tensor(difference))
    table = ", ".join(f"{kind} {value:.1e}" for kind, value in worst.items())
    print(f"\n{title}: {table}")
    assert all(value < TOLERANCE for value in worst.values()), table

"""What streams remember between steps, and the ragged rows that it is made of.

Axes: B streams, M frames of speaker cache, L frames of FIFO, V frames of voices, D channels, S slots of the stream. A
ragged tensor (B, T, C) comes with its lengths (B,): its first frames count, the rest are zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sortformer.config.stream import StreamConfig
from sortformer.masks import length_mask

__all__ = ["StreamState", "end_to_end", "start", "take", "window"]


@dataclass(frozen=True, slots=True)
class StreamState:
    """What B streams remember of the past; rows are independent."""

    cache: Tensor  # (B, M, D) speaker cache: subsampled frames, by slot once compressed
    cache_probs: Tensor  # (B, M, S) their probabilities
    cache_length: Tensor  # (B,) int64
    compressed: Tensor  # (B,) bool: has the cache been compressed yet?
    fifo: Tensor  # (B, L, D) the latest subsampled frames
    fifo_probs: Tensor  # (B, L, S) their latest probabilities
    fifo_length: Tensor  # (B,) int64
    silence_mean: Tensor  # (B, D) mean of the silent frames that left the FIFO
    silence_count: Tensor  # (B,) int64: how many those were
    voice_emb: Tensor  # (B, V, D) the encoder's embeddings of frames that left the FIFO, in order (V = 0: by slot)
    voice_probs: Tensor  # (B, V, S) who spoke in them
    voice_length: Tensor  # (B,) int64


def start(
    config: StreamConfig, dim: int, num_slots: int, rows: int = 1, device: torch.device | None = None
) -> StreamState:
    """Return the empty state of ``rows`` streams of a model with embeddings of size ``dim`` and so many slots.

    Raises:
        ConfigError: if the speaker cache is too small for the slots.
    """
    num_slots = config.slots(num_slots)
    config.speaker_cache.check_slots(num_slots)
    counts = torch.zeros(rows, dtype=torch.int64, device=device)
    voice_frames = 0 if config.clustering is None else config.voice_frames
    return StreamState(
        cache=torch.zeros(rows, config.speaker_cache.frames, dim, device=device),
        cache_probs=torch.zeros(rows, config.speaker_cache.frames, num_slots, device=device),
        cache_length=counts,
        compressed=counts > 0,
        fifo=torch.zeros(rows, config.fifo_frames, dim, device=device),
        fifo_probs=torch.zeros(rows, config.fifo_frames, num_slots, device=device),
        fifo_length=counts,
        silence_mean=torch.zeros(rows, dim, device=device),
        silence_count=counts,
        voice_emb=torch.zeros(rows, voice_frames, dim, device=device),
        voice_probs=torch.zeros(rows, voice_frames, num_slots, device=device),
        voice_length=counts,
    )


def end_to_end(parts: Sequence[tuple[Tensor, Tensor]], frames: int | None = None) -> tuple[Tensor, Tensor]:
    """Lay ragged tensors (B, T_i, C), each with its lengths (B,), end to end in every row.

    Returns a ragged tensor (B, frames, C) and its lengths (B,). ``frames`` must hold the longest row; without it, the
    result is as long as that one.
    """
    whole = torch.cat([part for part, _ in parts], dim=1)
    total = torch.stack([length for _, length in parts]).sum(dim=0)
    counts = torch.cat([length_mask(length, part.shape[1]) for part, length in parts], dim=1)
    size = int(total.max()) if frames is None else frames
    order = (~counts).to(torch.uint8).argsort(dim=1, stable=True)[:, :size]
    order = nn.functional.pad(order, (0, size - order.shape[1]))
    return take(whole, order, length_mask(total, size)), total


def window(x: Tensor, first: Tensor, length: Tensor, frames: int) -> Tensor:
    """Return the ragged tensor (B, frames, C) of ``length`` (B,) frames of ``x`` (B, T, C) from ``first`` (B,) on."""
    return take(x, first[:, None] + torch.arange(frames, device=x.device), length_mask(length, frames))


def take(x: Tensor, index: Tensor, valid: Tensor) -> Tensor:
    """Return the frames ``index`` (B, t) of ``x`` (B, T, C) as (B, t, C), zero where not ``valid`` (B, t)."""
    with_zeros = nn.functional.pad(x, (0, 0, 0, 1))
    index = torch.where(valid, index, x.shape[1])
    return with_zeros.gather(1, index[..., None].expand(-1, -1, x.shape[2]))

"""The state of streams with a speaker cache between steps.

Axes: B streams, M frames of speaker cache, L frames of FIFO, V frames of voices, D channels, S slots of the stream.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sortformer.config.stream import StreamConfig

__all__ = ["StreamState", "start"]


@dataclass(frozen=True, slots=True)
class StreamState:
    """The state of B streams; rows are independent."""

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
    """Return the empty state of ``rows`` streams of a model with ``dim`` embedding channels and ``num_slots`` slots.

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

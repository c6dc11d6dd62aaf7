"""The state of streams with a speaker cache between steps.

Axes: B streams, M frames of speaker cache, L frames of FIFO, V frames of voices, D channels, S slots of the stream.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sortformer.config.stream import StreamConfig
from sortformer.streaming.frames import Frames

__all__ = ["StreamState", "start"]


@dataclass(frozen=True, slots=True)
class StreamState:
    """The state of B streams; rows are independent."""

    cache: Frames  # M subsampled frames of the past, by slot once compressed
    compressed: Tensor  # (B,) bool: has the cache been compressed yet?
    fifo: Frames  # the L latest subsampled frames, with their latest probabilities
    silence_mean: Tensor  # (B, D) mean of the silent frames that left the FIFO
    silence_count: Tensor  # (B,) int64: how many those were
    voices: Frames  # V frames that left the FIFO, in order, as the encoder embedded them (V = 0: by slot)
    returned: Tensor  # (B, V + L, S) what the stream has returned of the frames of voices and FIFO (by slot: zero)
    known: Tensor  # (B, S, D) mean directions of the voices of enrolled speakers, zero for other slots


def start(
    config: StreamConfig, dim: int, num_slots: int, rows: int = 1, device: torch.device | None = None
) -> StreamState:
    """Return the empty state of ``rows`` streams of a model with ``dim`` embedding channels and ``num_slots`` slots.

    Raises:
        ConfigError: if the speaker cache is too small for the slots.
    """
    num_slots = config.slots(num_slots)
    config.speaker_cache.check_slots(num_slots)
    voice_frames = 0 if config.clustering is None else config.voice_frames
    cache, fifo, voices = (
        Frames.none(rows, frames, dim, num_slots, device)
        for frames in (config.speaker_cache.frames, config.fifo_frames, voice_frames)
    )
    return StreamState(
        cache=cache,
        compressed=torch.zeros(rows, dtype=torch.bool, device=device),
        fifo=fifo,
        silence_mean=torch.zeros(rows, dim, dtype=torch.float32, device=device),
        silence_count=torch.zeros(rows, dtype=torch.int64, device=device),
        voices=voices,
        returned=torch.zeros(rows, voice_frames + config.fifo_frames, num_slots, dtype=torch.float32, device=device),
        known=torch.zeros(rows, num_slots, dim, dtype=torch.float32, device=device),
    )

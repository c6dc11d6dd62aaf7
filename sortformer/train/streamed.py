"""Training on single steps of a stream: a compressed past, a chunk, and a short right context.

To stream, a model must learn to process [speaker cache | FIFO | chunk, right context], where frames of the past are
ordered by slot and not by time. So that is its input here. The labels of a frame go through the cache with it, so the
loss needs no changes. (NeMo runs all steps of a stream one after another instead: one forward pass per chunk.)
"""

import math

import torch
from torch import Tensor, nn

from sortformer.config.carrying import carries
from sortformer.config.model import ModelConfig
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.errors import ConfigError
from sortformer.masks import length_mask
from sortformer.model import Sortformer, SortformerOutput
from sortformer.ragged import end_to_end, window
from sortformer.streaming.frames import Frames
from sortformer.streaming.protocol import Chunk
from sortformer.streaming.state import start
from sortformer.streaming.step import update

__all__ = ["check_streams", "draw_stream", "streamed"]

# From NVIDIA's shortest preset (ours: 2) to the longest; drawn log-uniformly, as are the others.
_CHUNK_FRAMES = (3, 340)
_RIGHT_FRAMES = (1, 40)
_FIFO_FRAMES = (40, 188)
_CACHE_FRAMES = (100, 264)


def check_streams(model: ModelConfig) -> None:
    """Refuse a model that cannot be trained as streamed.

    Raises:
        ConfigError: if its features depend on the whole recording, its output is finer than its frames, or its layers
            carry a state: such a model needs no cache, and is trained on chunked recordings anyway.
    """
    if carries(model):
        raise ConfigError(
            "streamed_probability is for models with a speaker cache, but layers of this one have states: set it to 0"
        )
    if model.features.whole or model.head.upsampling > 1:
        raise ConfigError(
            "streamed_probability needs a model that streams with frames of 80 ms: set it to 0 for this one"
        )


def draw_stream(generator: torch.Generator, num_slots: int) -> StreamConfig:
    """Draw the sizes of chunk, right context, FIFO and cache, with room for ``num_slots``, at least a frame each."""

    def drawn(bounds: tuple[int, int]) -> int:
        low, high = map(math.log, bounds)
        return round(math.exp(low + (high - low) * float(torch.rand((), generator=generator))))

    room = (1 + SpeakerCacheConfig().silence_frames) * num_slots
    least, most = (max(room, bound) for bound in _CACHE_FRAMES)
    return StreamConfig(
        chunk_frames=drawn(_CHUNK_FRAMES),
        right_context_frames=drawn(_RIGHT_FRAMES),
        fifo_frames=drawn(_FIFO_FRAMES),
        speaker_cache=SpeakerCacheConfig(frames=drawn((least, most))),
    )


def streamed(
    model: Sortformer,
    feats: Tensor,
    lengths: Tensor,
    activity: Tensor,
    config: StreamConfig,
    heard_share: Tensor,
    order: Tensor,
    counts: Tensor | None = None,
) -> tuple[SortformerOutput, Tensor, Tensor | None]:
    """Run the model on one step of the streams ``feats`` (B, F, M); return its output, and the labels of its input.

    The past of each row is put into the cache by the model's own probabilities, without gradient, with the slots in the
    given order: if it is random, the model learns to follow the order in the cache, not that of the speakers.

    Args:
        lengths: (B,) valid feature frames.
        activity: (B, T, S) of the subsampled frames, with the speakers in any order.
        config: chunk, right context, FIFO and cache of this step.
        heard_share: (B,) share of each row that is past, in [0, 1).
        order: (S,) permutation of the slots.
        counts: (B, T, 3) probabilities that nobody, one, or more speak, if there is a count teacher.

    Returns:
        The output for n frames [cache | FIFO | chunk, right context], and their (B, n, S) labels and (B, n, 3) counts.
        Filler frames of the cache are the mean of frames that the model took for silence, with the mean of their counts
        and the majority of their labels; or, if the model has learned one, its silence, in which nobody speaks.
    """
    emb, frames = model.encoder.subsample(feats, lengths)
    batch, slots = activity.shape[0], activity.shape[2]
    nothing = torch.zeros_like(frames)
    heard = (heard_share * frames).long()
    longest = int(heard.max())
    with torch.no_grad():
        past = model.forward_frames(emb[:, :longest], length_mask(heard, longest)).probs if longest else None
    # Up to torch 2.10 autocast would reuse weights that it has cast without gradient.
    torch.clear_autocast_cache()
    # Only the counts of one and of more: the learned silence is padded with zeros, so that nobody speaks there.
    labels = activity if counts is None else torch.cat([activity, counts[..., 1:]], dim=2)
    labelled = torch.cat([emb, labels.to(emb)], dim=2)
    state = start(config, labelled.shape[2], slots, batch, emb.device)
    if past is not None:
        chunk = Chunk(labelled[:, :longest], nothing, heard, nothing)
        silence = model.encoder.silence
        silence = None if silence is None else nn.functional.pad(silence, (0, labels.shape[2]))
        state = update(config, state, chunk, Frames(chunk.emb, past[:, :, order], heard), silence)
    ahead = (frames - heard).clamp(max=config.chunk_frames + config.right_context_frames)
    coming = window(labelled, heard, ahead, int(ahead.max()))
    past_frames = [(part.emb, part.length) for part in (state.cache, state.fifo)]
    shown, total = end_to_end([*past_frames, (coming, ahead)])
    shown_emb, shown_activity, somebody = shown.split([emb.shape[2], slots, labels.shape[2] - slots], dim=2)
    output = model.forward_frames(shown_emb, length_mask(total, shown.shape[1]))
    shown_counts = None if counts is None else torch.cat([1 - somebody.sum(dim=2, keepdim=True), somebody], dim=2)
    return output, shown_activity.round(), shown_counts

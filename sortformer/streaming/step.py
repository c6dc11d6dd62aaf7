"""One step of a stream, as a pure function of an explicit state.

The model processes [speaker cache | FIFO | left context, chunk, right context]; the chunk's probabilities are final,
its frames join the FIFO, and frames popped from a full FIFO go to the speaker cache.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from sortformer.config.stream import StreamConfig
from sortformer.masks import length_mask
from sortformer.model import Sortformer
from sortformer.ragged import end_to_end, window
from sortformer.streaming.by_voice import rows_by_voice, worth_keeping
from sortformer.streaming.forget import forget
from sortformer.streaming.frames import Frames
from sortformer.streaming.protocol import Chunk
from sortformer.streaming.speaker_cache import add_silence, compress
from sortformer.streaming.state import StreamState, start

__all__ = ["SpeakerCache", "shown", "step", "update"]


@dataclass(frozen=True, slots=True)
class SpeakerCache:
    """A stream's memory is frames of the past, which the model processes anew in each step."""

    model: Sortformer
    config: StreamConfig

    def start(self, rows: int = 1) -> StreamState:
        """Return the state of ``rows`` streams before the first frame.

        Raises:
            ConfigError: if the speaker cache is too small for the slots of the stream.
        """
        model = self.model.config
        return start(self.config, model.encoder.dim, model.head.num_slots, rows, self.model.device)

    def step(self, state: StreamState, chunk: Chunk) -> tuple[StreamState, Tensor]:
        """Return the state after a chunk, and its probabilities (B, t, S); see :func:`step`."""
        return step(self.model, self.config, state, chunk)

    def forget(self, state: StreamState, channel: int) -> StreamState:
        """Return the state without the frames in which the speaker of an output channel speaks."""
        return forget(state, channel)


def step(model: Sortformer, config: StreamConfig, state: StreamState, chunk: Chunk) -> tuple[StreamState, Tensor]:
    """Advance every stream by its chunk; return the new state and the chunk's probabilities (B, t, S).

    t is the longest chunk's length (times the model's upsampling); shorter rows end in zeros. A row with an empty
    chunk keeps its state, bit for bit.
    """
    emb, total = shown(state, chunk)
    output = model.forward_frames(emb.to(model.dtype), length_mask(total, emb.shape[1]))
    probs, slots = output.probs, output.probs.shape[2]
    most = config.speaker_limit(slots)
    if config.clustering is not None:
        probs, past = rows_by_voice(probs, output.emb, state, chunk, config.clustering, most)
        state = replace(state, voices=replace(state.voices, probs=past))
    finer = model.config.head.upsampling
    first = state.cache.length + state.fifo.length + chunk.left
    final = window(probs, first * finer, chunk.length * finer, int(chunk.length.max()) * finer)
    # The cache has one probability for each subsampled frame.
    pooled = probs.unflatten(1, (-1, finer)).mean(dim=2) * (torch.arange(probs.shape[2], device=probs.device) < most)
    after = update(config, state, chunk, Frames(emb, pooled, total), model.encoder.silence, slots)
    if config.clustering is not None:
        after = _with_voices(state, after, chunk, Frames(output.emb, pooled, total))
    return after, final


def shown(state: StreamState, chunk: Chunk) -> tuple[Tensor, Tensor]:
    """Return the subsampled frames (B, T, D) of [cache | FIFO | chunk with its contexts], and their number (B,)."""
    new = chunk.left + chunk.length + chunk.right
    parts = [(state.cache.emb, state.cache.length), (state.fifo.emb, state.fifo.length), (chunk.emb, new)]
    return end_to_end(parts)


def _with_voices(state: StreamState, after: StreamState, chunk: Chunk, embedded: Frames) -> StreamState:
    """Return the state ``after`` a step with what is returned, and the voices of frames that have left the FIFO.

    ``embedded`` are [cache | FIFO | chunk with its contexts], as the encoder embedded them.
    """
    queue = _queue(state, chunk, embedded)
    gone = queue.length - after.fifo.length
    new = window(queue.probs, state.fifo.length, chunk.length, int(chunk.length.max()))
    parts = [(state.returned, state.voices.length + state.fifo.length), (new, chunk.length)]
    if not gone.any():
        return replace(after, returned=end_to_end(parts, state.returned.shape[1])[0])
    so_far, total = end_to_end(parts)
    heard = after.voices.then(replace(queue, length=gone))
    emb, probs, length = after.voices.emb.clone(), after.voices.probs.clone(), after.voices.length.clone()
    returned = after.returned.clone()
    for row in torch.nonzero(chunk.length)[:, 0].tolist():
        past = int(heard.length[row])
        said = heard.probs[row, :past]
        kept = worth_keeping(said.float().cpu().numpy(), emb.shape[1]) if gone[row] else np.arange(past)
        kept = torch.from_numpy(kept).to(said.device)
        length[row], emb[row], probs[row], returned[row] = len(kept), 0.0, 0.0, 0.0
        emb[row, : len(kept)], probs[row, : len(kept)] = heard.emb[row, kept], said[kept]
        left = torch.cat([so_far[row, kept], so_far[row, past : int(total[row])]])
        returned[row, : len(left)] = left
    return replace(after, voices=Frames(emb, probs, length), returned=returned)


def update(
    config: StreamConfig,
    state: StreamState,
    chunk: Chunk,
    heard: Frames,
    silence: Tensor | None = None,
    slots: int | None = None,
) -> StreamState:
    """Return the state after a chunk, given the subsampled frames of [cache | FIFO | chunk with its contexts].

    ``silence`` (D,) is the model's learned embedding of silence, if any. The cache has room for the model's own
    ``slots`` (None: all of the stream's), and for others once they have spoken. Synchronous rule of NeMo 3.0.0
    (``streaming_update``): until its first compression, the cache takes its probabilities from the latest step; then
    they are frozen.
    """
    queue = _queue(state, chunk, heard)  # the FIFO's probabilities are estimated in every step
    overflow = queue.length - config.fifo_frames
    popped = overflow.clamp(min=config.update_period_frames).minimum(queue.length) * (overflow > 0)  # NeMo: pop_out_len

    idle = chunk.length == 0
    fresh = window(heard.probs, torch.zeros_like(popped), state.cache.length, config.speaker_cache.frames)
    frozen = (state.compressed | idle)[:, None, None]
    cache = replace(state.cache, probs=torch.where(frozen, state.cache.probs, fresh))
    left = queue.part(popped, queue.length - popped, config.fifo_frames)
    fifo = replace(left, probs=torch.where(idle[:, None, None], state.fifo.probs, left.probs))
    state = replace(state, cache=cache, fifo=fifo)
    return _remember(config, state, replace(queue, length=popped), silence, slots or heard.probs.shape[2])


def _queue(state: StreamState, chunk: Chunk, heard: Frames) -> Frames:
    """Return the FIFO and the chunk, concatenated, of [cache | FIFO | chunk with its contexts]."""
    room, longest = state.fifo.emb.shape[1], int(chunk.length.max())
    fifo = heard.part(state.cache.length, state.fifo.length, room)
    new = heard.part(state.cache.length + state.fifo.length + chunk.left, chunk.length, longest)
    return fifo.then(new, room + longest)


def _remember(
    config: StreamConfig, state: StreamState, popped: Frames, silence: Tensor | None, slots: int
) -> StreamState:
    """Move frames that were popped from the FIFO into the speaker cache."""
    mean, count = add_silence(
        state.silence_mean,
        state.silence_count,
        popped.emb,
        popped.probs,
        popped.length,
        config.speaker_cache.silence_threshold,
    )
    frames = config.speaker_cache.frames
    found = state.cache.then(popped, max(frames, int((state.cache.length + popped.length).max())))
    emb, probs, total = found.emb, found.probs, found.length
    cache, cache_probs, full = emb[:, :frames].clone(), probs[:, :frames].clone(), total > frames
    filler = mean if silence is None else silence.expand_as(mean)
    last = ((probs > 0.5).any(dim=1) * torch.arange(1, probs.shape[2] + 1, device=probs.device)).amax(dim=1)
    shapes = torch.stack([total, last.clamp(min=slots)], dim=1)
    for shape in shapes[full].unique(dim=0):  # rows of one shape at a time, so that none is padded
        rows, (size, used) = (shapes == shape).all(dim=1), shape.tolist()
        cache[rows], kept_probs = compress(
            emb[rows, :size], probs[rows, :size, :used], filler[rows], config.speaker_cache
        )
        cache_probs[rows] = nn.functional.pad(kept_probs, (0, probs.shape[2] - used))
    return replace(
        state,
        cache=Frames(cache, cache_probs, total.clamp(max=frames)),
        compressed=state.compressed | full,
        silence_mean=mean,
        silence_count=count,
    )

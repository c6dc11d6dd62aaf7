"""Forget a speaker who has left, so that another one can have the slot."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from sortformer.masks import length_mask
from sortformer.ragged import take
from sortformer.streaming.state import StreamState

__all__ = ["forget"]


def forget(state: StreamState, channel: int) -> StreamState:
    """Return the state without the frames in which the speaker of an output channel of the model speaks (p > 1/2).

    To the model, the remaining frames are a conversation without that speaker: those who arrived later move up by one
    channel, and the last channel becomes free.
    """
    cache, cache_probs, cache_length = _without(state.cache, state.cache_probs, state.cache_length, channel)
    fifo, fifo_probs, fifo_length = _without(state.fifo, state.fifo_probs, state.fifo_length, channel)
    voices = _silenced(state.voice_emb, state.voice_probs, channel)
    voice_emb, voice_probs, voice_length = _without(*voices, state.voice_length, channel)
    return replace(
        state,
        cache=cache,
        cache_probs=cache_probs,
        cache_length=cache_length,
        fifo=fifo,
        fifo_probs=fifo_probs,
        fifo_length=fifo_length,
        voice_emb=voice_emb,
        voice_probs=voice_probs,
        voice_length=voice_length,
    )


def _silenced(emb: Tensor, probs: Tensor, channel: int) -> tuple[Tensor, Tensor]:
    """Return frames (B, V, D) and activity (B, V, S) with the first frame of each of the speaker's stretches zeroed.

    These frames stay, to separate what was said before and after. The FIFO has none: it is input to the model, which
    would take them for pauses.
    """
    said = probs[..., channel] > 0.5
    first = said & ~nn.functional.pad(said[:, :-1], (1, 0))
    return emb * ~first[..., None], probs * ~first[..., None]


def _without(emb: Tensor, probs: Tensor, length: Tensor, channel: int) -> tuple[Tensor, Tensor, Tensor]:
    inside = length_mask(length, emb.shape[1])
    kept = inside & ~(probs[..., channel] > 0.5)
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)
    valid = kept.gather(1, order)
    gone = probs[..., channel : channel + 1]
    probs = torch.cat([probs[..., :channel], probs[..., channel + 1 :], torch.zeros_like(gone)], dim=2)
    return take(emb, order, valid), take(probs, order, valid), kept.sum(dim=1)

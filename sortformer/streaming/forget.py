"""Forget a speaker who has left, so that another one can have the slot."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from sortformer.masks import length_mask
from sortformer.ragged import end_to_end, take
from sortformer.streaming.frames import Frames
from sortformer.streaming.state import StreamState

__all__ = ["forget"]


def forget(state: StreamState, channel: int) -> StreamState:
    """Return the state without the frames in which the speaker of an output channel of the model speaks (p > 1/2).

    To the model, the remaining frames are a conversation without that speaker: those who arrived later move up by one
    channel, and the last channel becomes free.
    """
    voices = _silenced(state.voices, channel)
    parts = [(part.probs, part.length) for part in (voices, state.fifo)]
    returned = take(state.returned, *_others(*end_to_end(parts, state.returned.shape[1]), channel))
    return replace(
        state,
        cache=_without(state.cache, channel),
        fifo=_without(state.fifo, channel),
        voices=_without(voices, channel),
        returned=_moved_up(returned, channel, dim=2),
        known=_moved_up(state.known, channel, dim=1),
    )


def _silenced(voices: Frames, channel: int) -> Frames:
    """Return frames with the first frame of each of the speaker's stretches zeroed.

    These frames stay, to separate what was said before and after. The FIFO has none: it is input to the model, which
    would take them for pauses.
    """
    said = voices.probs[..., channel] > 0.5
    first = said & ~nn.functional.pad(said[:, :-1], (1, 0))
    return replace(voices, emb=voices.emb * ~first[..., None], probs=voices.probs * ~first[..., None])


def _without(frames: Frames, channel: int) -> Frames:
    order, valid = _others(frames.probs, frames.length, channel)
    probs = _moved_up(frames.probs, channel, dim=2)
    return Frames(take(frames.emb, order, valid), take(probs, order, valid), valid.sum(dim=1))


def _others(probs: Tensor, length: Tensor, channel: int) -> tuple[Tensor, Tensor]:
    """Return an order (B, T) of frames with the others' before the speaker's, and a mask (B, T) of the others'."""
    kept = length_mask(length, probs.shape[1]) & ~(probs[..., channel] > 0.5)
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)
    return order, kept.gather(1, order)


def _moved_up(values: Tensor, channel: int, dim: int) -> Tensor:
    """Return values of channels, along ``dim``, without one of them and with zeros for a last one."""
    before, gone, after = values.tensor_split([channel, channel + 1], dim)
    return torch.cat([before, after, torch.zeros_like(gone)], dim)

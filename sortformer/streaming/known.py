"""Known voices in a stream: each has an output channel, and is another speaker than the others."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import torch

from sortformer.config.clustering import ClusteringConfig
from sortformer.enrolled import LEAST_SPEECH_S, no_voice, warn_of_likeness
from sortformer.errors import InputError
from sortformer.model import Sortformer
from sortformer.offline import clip_voice
from sortformer.streaming.state import StreamState

__all__ = ["introduced", "moved", "slot_of_clip"]


def introduced(
    state: StreamState,
    model: Sortformer,
    clustering: ClusteringConfig,
    name: str,
    wave: np.ndarray,
    channel: int,
    others: Mapping[str, int],
) -> StreamState:
    """Return the state of one stream in which an output channel is that of the voice in a clip (n,) at 16 kHz.

    ``others`` are the channels of known voices, by name.

    Raises:
        InputError: if the clip of ``name`` has too little speech.

    Warns:
        SortformerWarning: if it sounds like the clip of another.
    """
    voice, known = clip_voice(model, name, wave, clustering), state.known.clone()
    voices = {other: known[0, place].cpu().numpy() for other, place in others.items()}
    warn_of_likeness(name, voice, voices, clustering.threshold, stacklevel=4)
    known[0, channel] = torch.from_numpy(voice)
    return replace(state, known=known)


def moved(state: StreamState, channel: int, other: int) -> StreamState:
    """Return the state of a stream in which the known voice of an output channel is that of another, which had none."""
    known = state.known.clone()
    known[:, [channel, other]] = known[:, [other, channel]]
    return replace(state, known=known)


def slot_of_clip(name: str, spoken: np.ndarray, free: Collection[int], taken: Mapping[int, str]) -> int:
    """Return the free slot in which the voice of a clip speaks most.

    Args:
        name: of the person in the clip.
        spoken: (S,) seconds of speech in each slot.
        free: slots of nobody yet.
        taken: the names of the other slots.

    Raises:
        InputError: if the clip has too little speech, or sounds like that of somebody else.
    """
    slot = max(free, key=lambda slot: spoken[slot])
    rival = max(taken, key=lambda slot: spoken[slot], default=slot)
    if max(spoken[slot], spoken[rival]) < LEAST_SPEECH_S:
        raise no_voice(name)
    if spoken[rival] > spoken[slot]:
        raise InputError(
            f"the clip of '{name}' sounds like '{taken[rival]}': give longer clips with one voice only, or leave "
            "one of the two out"
        )
    return slot

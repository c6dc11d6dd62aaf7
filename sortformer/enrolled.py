"""Enrolment: clips of known voices, and matching them to the speakers of a recording."""

import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from sortformer.audio import AudioSource
from sortformer.audio.arrays import is_array
from sortformer.audio.loudness import peak
from sortformer.audio.reading import opened, up_to
from sortformer.audio.signal import INAUDIBLE
from sortformer.clustering import mean_direction
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE
from sortformer.warned import warn

__all__ = [
    "LEAST_SPEECH_S",
    "mean_voice",
    "names_of_voices",
    "no_voice",
    "read_clip",
    "warn_of_likeness",
]

LEAST_SPEECH_S = 0.5
"""Least speech that a clip needs to enroll a voice."""

_SHORTEST_CLIP_S = 1.0

Name = TypeVar("Name")


def read_clip(name: str, audio: AudioSource, sample_rate: int | None = None, longest_s: float = math.inf) -> np.ndarray:
    """Return the samples (n,) of a clip at 16 kHz; the ``sample_rate`` of an array defaults to 16 kHz.

    If it is longer than ``longest_s`` seconds, only a little more than that is read and returned.

    Raises:
        InputError: if it cannot be read, or is too short or silent.
    """
    try:
        rate = SAMPLE_RATE if sample_rate is None and is_array(audio) else sample_rate
        with opened(audio, rate) as (_, coming):
            wave = np.concatenate(up_to(coming, longest_s))
    except InputError as error:
        raise InputError(f"the clip of '{name}': {error}") from error
    if len(wave) < _SHORTEST_CLIP_S * SAMPLE_RATE:
        raise InputError(
            f"the clip of '{name}' lasts {len(wave) / SAMPLE_RATE:.2f} s: at least {_SHORTEST_CLIP_S:g} s is needed"
        )
    if peak(wave) < INAUDIBLE:
        raise no_voice(name)
    return wave


def no_voice(name: str) -> InputError:
    """Return the error for a clip with too little speech."""
    return InputError(f"no voice was found in the clip of '{name}': give a few seconds of clear speech")


def mean_voice(probs: np.ndarray, emb: np.ndarray, speaker: int) -> np.ndarray | None:
    """Return the mean direction (D,) of a speaker's embeddings where nobody else speaks; None if there are none.

    Args:
        probs: (T, K) probabilities of the speakers.
        emb: (T, D) the encoder's embeddings of the same frames.
    """
    alone = (probs[:, speaker] > 0.5) & ((probs > 0.5).sum(axis=1) == 1)
    if not alone.any():
        return None
    return mean_direction(emb[alone])


def warn_of_likeness(
    name: str, voice: np.ndarray, known: Mapping[str, np.ndarray], distance: float, stacklevel: int
) -> None:
    """Warn if the voice (D,) of a clip is less than ``distance`` from one in ``known`` (see ``names_of_voices``).

    Warns:
        SortformerWarning: for each of these.
    """
    for other, others in known.items():
        apart = 1 - float(voice @ others)
        if apart < distance:
            warn(
                f"the clips of '{other}' and '{name}' sound like one voice (distance {apart:.2f}, two voices have "
                f"{distance:g} or more): their names may be confused; give longer clips with one voice only",
                stacklevel=stacklevel,
            )


def names_of_voices(
    probs: np.ndarray, emb: np.ndarray, known: Mapping[Name, np.ndarray], distance: float
) -> dict[int, Name]:
    """Return the names of the speakers (columns of ``probs``) with known voices, each name at most once.

    The assignment minimises the sum of the distances. Names whose voices are not heard remain unused.

    Args:
        probs: (T, K) probabilities of the speakers.
        emb: (T, D) the encoder's embeddings of the same frames.
        known: for each name the mean direction (D,) of the voice (see ``mean_voice``).
        distance: cosine distance from which on voices are different (``ClusteringConfig.threshold``).
    """
    heard = {speaker: mean_voice(probs, emb, speaker) for speaker in range(probs.shape[1])}
    voices = {speaker: mean for speaker, mean in heard.items() if mean is not None}
    if not voices or not known:
        return {}
    apart = 1 - np.stack(list(voices.values())) @ np.stack(list(known.values())).T
    # Clip distances above the threshold, so that pairs that do not match do not influence the others.
    pairs = zip(*linear_sum_assignment(np.minimum(apart, distance)), strict=True)
    speakers, names = tuple(voices), tuple(known)
    return {speakers[row]: names[column] for row, column in pairs if apart[row, column] < distance}

"""Numbers of speakers: those that a caller asks for, and those that are found."""

from collections.abc import Iterable

import numpy as np

from sortformer.config.checks import whole
from sortformer.config.clustering import MOST_SPEAKERS, ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError, counted
from sortformer.postprocess import speech_ticks
from sortformer.warned import warn

__all__ = ["first_heard", "keep_slots", "speaker_range", "warn_if_full"]


def speaker_range(
    limit: int,
    num_speakers: int | None = None,
    min_speakers: int | None = None,
    max_speakers: int | None = None,
) -> tuple[int, int]:
    """Return the least and the greatest number of speakers to keep.

    Raises:
        InputError: when a number is not whole, below 1 or above the limit of the model, or the numbers contradict each
            other.
    """
    if num_speakers is not None and (min_speakers is not None or max_speakers is not None):
        raise InputError("give either num_speakers or min_speakers and max_speakers, not both")
    num_speakers, min_speakers = whole("num_speakers", num_speakers), whole("min_speakers", min_speakers)
    max_speakers = whole("max_speakers", max_speakers)
    for name, number in (("num_speakers", num_speakers), ("min_speakers", min_speakers)):
        if number is not None and number > limit:
            raise InputError(f"{name} is {number}, but this model supports at most {limit} speakers")
    if num_speakers is not None:
        return num_speakers, num_speakers
    fewest, most = min_speakers or 0, min(limit, max_speakers or limit)
    if fewest > most:
        raise InputError(f"min_speakers is {fewest}, which is above max_speakers, {most}")
    return fewest, most


def keep_slots(probs: np.ndarray, config: PostprocessConfig, step_s: float, fewest: int, most: int) -> tuple[int, ...]:
    """Return the ``most`` most active slots; warn if fewer than ``fewest`` speak.

    Activity is the duration of a slot's turns after post-processing.

    Args:
        probs, config, step_s: as for :func:`sortformer.postprocess.turns`.
        fewest, most: as :func:`speaker_range` returns them.
    """
    spoken = speech_ticks(probs, config, step_s)
    heard = np.count_nonzero(spoken)
    if heard < fewest:
        asked = counted(fewest, "speaker") if fewest == most else f"at least {counted(fewest, 'speaker')}"
        warn(f"asked for {asked}, but found {f'only {heard}' if heard else 'none'}", stacklevel=3)
    return tuple(np.argsort(-spoken, kind="stable")[:most].tolist())


def first_heard(tries: Iterable[np.ndarray], config: PostprocessConfig, step_s: float, fewest: int) -> np.ndarray:
    """Return the first of the ``tries`` in which at least ``fewest`` speak; else the first with the most speakers.

    Post-processing may leave a voice without turns; with another number of clusters it may keep more speakers.
    """
    best, most = None, -1
    for probs in tries:
        heard = np.count_nonzero(speech_ticks(probs, config, step_s))
        if heard >= fewest:
            return probs
        if heard > most:
            best, most = probs, heard
    assert best is not None
    return best


def warn_if_full(
    name: str, speakers: int, limit: int, clustering: ClusteringConfig | None, most: int | None = None
) -> None:
    """Warn if a recording has ``limit`` speakers, the most that can be told apart: there may be more.

    Not if a caller wants ``most`` speakers, and these can be told apart. With ``clustering``, a greater limit can be
    requested.
    """
    if speakers >= limit and (most is None or most > limit):
        told = f"that there are at most {limit} (max_speakers={limit}) if there are no more"
        if clustering is not None and limit < MOST_SPEAKERS:
            told = f"how many there may be at most (max_speakers), up to {MOST_SPEAKERS}"
        full = f"{name} has {counted(limit, 'speaker')}, the maximum, and any further one is merged with these"
        warn(f"{full}: say {told}", stacklevel=3)

"""The bridge from probabilities to turns: hysteresis, padding, shortest durations, one speaker at a time.

Follows NVIDIA's post-processing step by step, so that its tuned settings mean the same here: probabilities are repeated
to 10 ms, all comparisons are strict, and times are rounded to 10 ms. Inside, times are whole microseconds.
"""

import warnings
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sortformer.annotation import Diarization, Turn
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError

__all__ = ["keep_slots", "turns"]

_TICK_US = 10_000


class _Span(NamedTuple):
    """A stretch of time in which one slot is active: microseconds in the making, 10 ms ticks when finished."""

    start: int
    end: int


def turns(
    probs: np.ndarray,
    config: PostprocessConfig,
    step_s: float,
    *,
    duration: float | None = None,
    uri: str = "audio",
    exclusive: bool = False,
) -> Diarization:
    """Return the turns that the probabilities of a whole recording amount to.

    Speakers are called ``speaker_0``, ``speaker_1``, ... in order of arrival (first turn); slots that never speak get
    no name. The confidence of a turn is the slot's mean probability inside it.

    Args:
        probs: (T, S) probabilities of the slots in each output frame.
        step_s: seconds from one output frame to the next, a multiple of 10 ms.
        duration: of the recording in seconds, to which turns are cut; the end of the last frame when not given.
        exclusive: give every instant to the most probable of the speakers who have a turn there (for joining with a
            transcript).

    Raises:
        InputError: when the probabilities are not a finite (T, S) array or the step is not a multiple of 10 ms.
    """
    ticks = _ticks(probs, step_s)
    spans = [_spans(column, config) for column in ticks.T]
    if exclusive:
        spans = _exclusive(spans, ticks)
    heard = sorted((own[0].start, slot) for slot, own in enumerate(spans) if own)
    found = [
        Turn(span.start / 100, span.end / 100, f"speaker_{speaker}", float(ticks[span.start : span.end, slot].mean()))
        for speaker, (_, slot) in enumerate(heard)
        for span in spans[slot]
    ]
    return Diarization(tuple(found), len(probs) * step_s if duration is None else duration, uri)


def keep_slots(
    probs: np.ndarray,
    config: PostprocessConfig,
    step_s: float,
    *,
    num_speakers: int | None = None,
    min_speakers: int | None = None,
    max_speakers: int | None = None,
) -> np.ndarray:
    """Return the probabilities with all but the most active slots set to 0, as the wanted number of speakers asks.

    Activity is the time that a slot speaks after post-processing. Nobody is invented: where fewer speak than asked for,
    a warning says so.

    Args:
        probs, config, step_s: as for :func:`turns`.
        num_speakers: exactly so many; excludes the other two.

    Raises:
        InputError: when a number is below 1 or above the number of slots, or the numbers contradict each other.
    """
    fewest, most = _wanted(probs.shape[-1], num_speakers, min_speakers, max_speakers)
    ticks = _ticks(probs, step_s)
    spoken = np.array([sum(end - start for start, end in _spans(column, config)) for column in ticks.T])
    heard = np.count_nonzero(spoken)
    if heard < fewest:
        asked = f"{fewest} speakers" if num_speakers else f"at least {fewest} speakers"
        warnings.warn(f"asked for {asked}, but {f'only {heard}' if heard else 'nobody'} spoke", stacklevel=2)
    kept = np.argsort(-spoken, kind="stable")[:most]
    result = np.zeros_like(probs)
    result[:, kept] = probs[:, kept]
    return result


def _wanted(num_slots: int, exactly: int | None, fewest: int | None, most: int | None) -> tuple[int, int]:
    """Least and greatest number of speakers to keep, or the reason why they cannot be obeyed."""
    if exactly is not None and (fewest is not None or most is not None):
        raise InputError("give either num_speakers or min_speakers and max_speakers, not both")
    for name, number in (("num_speakers", exactly), ("min_speakers", fewest), ("max_speakers", most)):
        if number is not None and number < 1:
            raise InputError(f"{name} must be 1 or more, got {number}")
        if number is not None and number > num_slots and name != "max_speakers":
            raise InputError(f"{name} is {number}, but this model can tell apart at most {num_slots} speakers")
    if exactly is not None:
        return exactly, exactly
    low, high = fewest or 0, num_slots if most is None else most
    if low > high:
        raise InputError(f"min_speakers is {low}, which is above max_speakers, {high}")
    return low, high


def _ticks(probs: np.ndarray, step_s: float) -> np.ndarray:
    """Probabilities (T, S) repeated to one row every 10 ms."""
    if probs.ndim != 2 or not np.isfinite(probs).all():
        raise InputError(f"post-processing needs finite probabilities (frames, slots), got an array {probs.shape}")
    repeats = round(step_s * 100)
    if repeats < 1 or abs(step_s * 100 - repeats) > 1e-6:
        raise InputError(f"the step between frames must be a multiple of 10 ms, got {step_s} s")
    return np.repeat(probs, repeats, axis=0)


def _spans(column: np.ndarray, config: PostprocessConfig) -> list[_Span]:
    """Finished spans of one slot in ticks, from its probability at every tick."""
    pad_on, pad_off, min_on, min_off = (
        round(seconds * 1e6) for seconds in (config.pad_on_s, config.pad_off_s, config.min_on_s, config.min_off_s)
    )
    raw = _hysteresis(column, config.onset, config.offset)
    padded = [_Span(max(0, start * _TICK_US - pad_on), end * _TICK_US + pad_off) for start, end in raw]
    long_enough = [span for span in _joined(padded, 0) if span.end - span.start >= min_on]
    filled = _joined(long_enough, min_off - 1)
    rounded = [_Span(_nearest_tick(start), min(_nearest_tick(end), len(column))) for start, end in filled]
    return _joined([span for span in rounded if span.start < span.end], 0)


def _hysteresis(column: np.ndarray, onset: float, offset: float) -> list[tuple[int, int]]:
    """Stretches from the first tick above ``onset`` to the next below ``offset``, or to the last tick of the recording.

    The tick that ends a stretch cannot start the next, and one that is open at the end stops 10 ms early: as NVIDIA's.
    """
    above, below = np.flatnonzero(column > onset), np.flatnonzero(column < offset)
    found: list[tuple[int, int]] = []
    free = 0
    while (rise := np.searchsorted(above, free)) < len(above):
        start = int(above[rise])
        fall = np.searchsorted(below, start + 1)
        end = int(below[fall]) if fall < len(below) else len(column) - 1
        found.append((start, end))
        free = end + 1
    return found


def _joined(spans: list[_Span], gap: int) -> list[_Span]:
    """Join sorted spans that overlap or are at most ``gap`` apart (0: touching, negative: none)."""
    result: list[_Span] = []
    for span in spans:
        if result and span.start - result[-1].end <= gap:
            result[-1] = _Span(result[-1].start, max(result[-1].end, span.end))
        else:
            result.append(span)
    return result


def _nearest_tick(time_us: int) -> int:
    return (time_us + _TICK_US // 2) // _TICK_US


def _exclusive(spans: list[list[_Span]], ticks: np.ndarray) -> list[list[_Span]]:
    """Give each tick to the most probable slot that is active there, the lower one of equals."""
    contest = np.full(ticks.shape, -np.inf)
    for slot, own in enumerate(spans):
        for start, end in own:
            contest[start:end, slot] = ticks[start:end, slot]
    winner = np.where(np.isfinite(contest).any(axis=1), contest.argmax(axis=1), -1)
    borders = np.flatnonzero(np.diff(winner, prepend=-1, append=-1))
    result: list[list[_Span]] = [[] for _ in spans]
    for start, end in pairwise(borders):
        if winner[start] >= 0:
            result[winner[start]].append(_Span(int(start), int(end)))
    return result

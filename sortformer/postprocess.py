"""Post-processing, the bridge from probabilities to turns: thresholds and exclusive turns.

Follows NVIDIA's post-processing step by step, so that its tuned settings mean the same here: probabilities are repeated
to 10 ms, and the slots' stretches are those of :mod:`sortformer.stretches`.
"""

from collections.abc import Collection, Mapping
from itertools import count
from types import MappingProxyType

import numpy as np

from sortformer.annotation import Diarization, Turn
from sortformer.config.checks import switch
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.stretches import stretches
from sortformer.unnamed import arrival_name

__all__ = ["decisive", "expected_gain", "only_slots", "speech_ticks", "turns"]

_ROUNDING = 1e-5  # by which a weighted mean of probabilities may exceed 1


def turns(
    probs: np.ndarray,
    config: PostprocessConfig,
    step_s: float,
    *,
    duration: float | None = None,
    uri: str = "audio",
    exclusive: bool = False,
    names: Mapping[int, str] = MappingProxyType({}),
    slots: Collection[int] | None = None,
) -> Diarization:
    """Return the turns of a whole recording, given its probabilities.

    Speakers are called ``speaker_0``, ``speaker_1``, ... in order of arrival (first turn), unless they have ``names``;
    labels among these are passed over, and slots without turns get none. The confidence of a turn is
    ``config.confidence_of`` the slot's mean probability in it.

    Args:
        probs: (T, S) probabilities of the slots in each output frame.
        step_s: seconds from one output frame to the next, a multiple of 10 ms.
        duration: of the recording in seconds, to which turns are cut; by default the end of the last frame.
        exclusive: one speaker at a time, the most probable of those with a turn (for joining with a transcript).
        names: of slots whose speakers are known; two slots of one name are one speaker.
        slots: the only ones with turns (None: all); their turns do not change by leaving out the others.

    Raises:
        InputError: when the probabilities are not an array (T, S) of floats from 0 to 1, the step is not a multiple of
            10 ms, ``exclusive`` is neither True nor False, or ``names`` or ``slots`` has a slot that does not exist.
    """
    exclusive = switch("exclusive", exclusive)
    spans = _spoken(probs, config, step_s, slots)
    ticks = np.repeat(probs, _ticks(step_s), axis=0)
    if exclusive:
        spans = _exclusive(spans, ticks)
    for what, asked in (("names", names), ("slots", () if slots is None else slots)):
        if outside := [slot for slot in asked if slot not in range(len(spans))]:
            raise InputError(f"{what} has the slot {outside[0]}, but there are {len(spans)} slots, counted from 0")
    heard = sorted((own[0, 0], slot) for slot, own in enumerate(spans) if len(own) and slot not in names)
    free = (label for label in map(arrival_name, count()) if label not in names.values())
    speakers = dict(names) | {slot: label for (_, slot), label in zip(heard, free, strict=False)}
    found = [
        Turn(start / 100, end / 100, name, config.confidence_of(float(ticks[start:end, slot].mean())))
        for slot, name in speakers.items()
        for start, end in spans[slot].tolist()
    ]
    return Diarization(tuple(found), len(probs) * step_s if duration is None else duration, uri)


def decisive(probs: np.ndarray, config: PostprocessConfig, slots: Collection[int] | None = None) -> np.ndarray:
    """Return the values (T, S) that the thresholds apply to, according to ``config.decision``.

    They are 0 except for ``slots`` (None: all); the others still count for how many speak at once.
    """
    gain = probs if config.decision == "slots" else expected_gain(probs)
    return gain if slots is None else only_slots(gain, slots)


def only_slots(values: np.ndarray, slots: Collection[int]) -> np.ndarray:
    """Return the values (T, S) with all slots but the given ones set to 0."""
    return np.where(np.isin(np.arange(values.shape[1]), list(slots)), values, values.dtype.type(0))


def expected_gain(probs: np.ndarray) -> np.ndarray:
    """Return p / (p + P(fewer speak)) for each slot (T, S): above 1/2 if reporting it lowers the expected error.

    A frame's error is max(spoken, reported) minus the correctly reported (the DER's miss, false alarm and confusion).
    Reporting the j-th most probable slot costs one error if fewer than j speak, and saves one if it does speak: it pays
    if p > P(fewer than j). The number of speakers is assumed to be as certain as its mean, the sum of the
    probabilities, allows: two slots at 1/2 are one speaker of uncertain identity, and the likelier one is reported.
    """
    order = np.argsort(-probs, axis=1, kind="stable")
    ranked = np.take_along_axis(probs, order, axis=1)
    enough = np.clip(probs.sum(axis=1, keepdims=True) - np.arange(probs.shape[1]), 0.0, 1.0)
    gain = ranked / np.maximum(ranked + 1 - enough, 1e-9)
    result = np.empty_like(probs)
    np.put_along_axis(result, order, gain, axis=1)
    return result


def speech_ticks(probs: np.ndarray, config: PostprocessConfig, step_s: float) -> np.ndarray:
    """Return the duration of speech of each slot, (S,), in ticks of 10 ms; arguments as for :func:`turns`."""
    return np.array([np.diff(spans).sum() for spans in _spoken(probs, config, step_s)])


def _spoken(
    probs: np.ndarray, config: PostprocessConfig, step_s: float, slots: Collection[int] | None = None
) -> list[np.ndarray]:
    """Return the stretches (K, 2) of each slot, start and end in ticks of 10 ms; arguments as for :func:`turns`."""
    if not (isinstance(probs, np.ndarray) and probs.dtype.kind == "f"):  # of integers, halves would be rounded away
        got = f"one of {probs.dtype}" if isinstance(probs, np.ndarray) else type(probs).__name__
        raise InputError(f"probabilities must be a numpy array of floats, got {got}")
    if probs.ndim != 2:
        raise InputError(f"probabilities must have the shape (frames, slots), got {probs.shape}")
    if np.isnan(probs).any():
        raise InputError("probabilities must be numbers, got NaN")
    if not (np.abs(probs - 0.5) <= 0.5 + _ROUNDING).all():
        raise InputError(
            f"probabilities must be between 0 and 1, got {probs.min():g} to {probs.max():g}: logits need a sigmoid"
        )
    each = _ticks(step_s)
    return [stretches(config, column, each) for column in decisive(probs, config, slots).T]


def _ticks(step_s: float) -> int:
    """Return the number of 10 ms ticks in a step."""
    ticks = round(step_s * 100)
    if ticks < 1 or abs(step_s * 100 - ticks) > 1e-6:
        raise InputError(f"the step between frames must be a multiple of 10 ms, got {step_s} s")
    return ticks


def _exclusive(spans: list[np.ndarray], ticks: np.ndarray) -> list[np.ndarray]:
    """Assign each tick to the most probable active slot; ties go to the lower one."""
    contest = np.full(ticks.shape, -np.inf)
    for slot, own in enumerate(spans):
        for start, end in own:
            contest[start:end, slot] = ticks[start:end, slot]
    winner = np.where(np.isfinite(contest).any(axis=1), contest.argmax(axis=1), -1)
    borders = np.flatnonzero(np.diff(winner, prepend=-1, append=-1))
    lasting = np.stack([borders[:-1], borders[1:]], axis=1)
    return [lasting[winner[lasting[:, 0]] == slot] for slot in range(len(spans))]

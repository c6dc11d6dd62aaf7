"""Parametric turn-taking: who speaks from when to when, before any voice is chosen."""

from dataclasses import dataclass

import numpy as np

from sortformer.config.simulation import TurnTakingConfig
from sortformer.simulate.ranges import log_uniform

__all__ = ["Outline", "parametric_outline"]

_HOPS_PER_S = 100
_SHORTEST_TURN = 20  # hops


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """Turns of one conversation, in hops (10 ms): (n,) int64 arrays, ``speaker`` counts from 0."""

    speaker: np.ndarray
    start: np.ndarray
    length: np.ndarray


def parametric_outline(rng: np.random.Generator, num_speakers: int, num_hops: int, config: TurnTakingConfig) -> Outline:
    """Draw a conversation: log-normal turns and pauses, interruptions, back-channels, dominance, long silences.

    The style (tempo, overlap, dominance) is drawn once, then turns follow one another until ``num_hops``.
    A speaker who has not spoken yet is more likely to be next, so that nearly all are heard.
    """
    turn_median = log_uniform(rng, config.turn_median_s)
    pause_median = log_uniform(rng, config.pause_median_s)
    overlap_probability = rng.uniform(*config.overlap_probability)
    backchannel_probability = rng.uniform(*config.backchannel_probability)
    share = rng.dirichlet(np.full(num_speakers, log_uniform(rng, config.dominance))) + 0.02
    turns: list[tuple[int, int, int]] = []
    heard = np.zeros(num_speakers, dtype=bool)
    speaker = -1
    start, floor_end = _pause(rng, pause_median, config), 0
    while start < num_hops:
        speaker = _next_speaker(rng, speaker, share, heard, config.same_speaker_probability)
        heard[speaker] = True
        length = max(_SHORTEST_TURN, round(_HOPS_PER_S * turn_median * np.exp(config.turn_spread * rng.normal())))
        turns.append((speaker, start, length))
        if num_speakers > 1 and length > 120 and rng.random() < backchannel_probability:
            turns.append(_backchannel(rng, speaker, num_speakers, start, length, config))
        floor_end = max(floor_end, start + length)
        overlapped = num_speakers > 1 and rng.random() < overlap_probability
        if overlapped:
            early = round(_HOPS_PER_S * config.overlap_median_s * np.exp(0.7 * rng.normal()))
            start = max(start + _SHORTEST_TURN, floor_end - early)
        else:
            start = floor_end + _pause(rng, pause_median, config)
    table = np.array(turns, dtype=np.int64).reshape(-1, 3)
    return Outline(table[:, 0], table[:, 1], table[:, 2])


def _pause(rng: np.random.Generator, median_s: float, config: TurnTakingConfig) -> int:
    if rng.random() < config.long_silence_probability:
        return round(_HOPS_PER_S * rng.uniform(*config.long_silence_s))
    return round(_HOPS_PER_S * median_s * np.exp(config.pause_spread * rng.normal()))


def _next_speaker(
    rng: np.random.Generator, last: int, share: np.ndarray, heard: np.ndarray, same_probability: float
) -> int:
    if len(share) == 1 or (last >= 0 and rng.random() < same_probability):
        return max(last, 0)
    weights = np.where(heard, share, np.maximum(share, 0.3))
    if last >= 0:
        weights[last] = 0
    return int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))


def _backchannel(
    rng: np.random.Generator, speaker: int, num_speakers: int, start: int, length: int, config: TurnTakingConfig
) -> tuple[int, int, int]:
    listener = (speaker + 1 + int(rng.integers(num_speakers - 1))) % num_speakers
    at = start + int(rng.uniform(0.1, 0.9) * length)
    return listener, at, max(_SHORTEST_TURN, round(_HOPS_PER_S * rng.uniform(*config.backchannel_s)))

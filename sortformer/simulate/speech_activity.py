"""Speech activity detection in clean recordings of one voice, which gives simulated conversations their labels."""

import numpy as np

from sortformer.grid import HOP_SAMPLES

__all__ = ["active_runs", "joined_runs", "speech_activity"]

_PRE_EMPHASIS = 0.9  # lifts weak consonants over rumble
_BELOW_TOP_DB = 30.0  # an onset lies at most this far below the loud parts ...
_ABOVE_FLOOR = 0.45  # ... and at least this share of the dynamic range above the quiet ones
_EXTEND_DB = 5.0  # a run reaches as far as the level stays within this of the onset's
_NEVER_BELOW = 0.3  # of the dynamic range above the quiet parts
_SHORTEST_SOUND = 4  # hops; a click does not join two phrases
_LONGEST_GAP = 25  # hops; shorter pauses belong to the phrase
_SHORTEST_RUN = 8  # hops; shorter phrases are noises
_HANGOVER = 2  # hops on each side


def speech_activity(wave: np.ndarray) -> np.ndarray:
    """Decide for each hop (10 ms) of a clean single-voice recording whether it is speech.

    Levels are relative to the recording's own loud and quiet parts, with hysteresis; pauses of a quarter of a second
    stay inside a phrase. Not for noisy or mixed audio.

    Args:
        wave: (N,) float samples at 16 kHz.

    Returns:
        (N // 160,) bool.
    """
    num_hops = len(wave) // HOP_SAMPLES
    if num_hops == 0:
        return np.zeros(0, dtype=bool)
    level = _levels_db(wave, num_hops)
    floor, top = np.percentile(level, [5, 95])
    if top < -90:
        return np.zeros(num_hops, dtype=bool)
    onset = max(top - _BELOW_TOP_DB, floor + _ABOVE_FLOOR * (top - floor))
    onset = min(onset, top - 10)
    candidate = level > max(onset - _EXTEND_DB, floor + _NEVER_BELOW * (top - floor))
    starts, ends = active_runs(candidate)
    loud = np.concatenate([[0], np.cumsum(level > onset)])
    confirmed = (loud[ends] > loud[starts]) & (ends - starts >= _SHORTEST_SOUND)
    starts, ends = joined_runs(starts[confirmed], ends[confirmed], _LONGEST_GAP)
    lasting = ends - starts >= _SHORTEST_RUN
    active = np.zeros(num_hops, dtype=bool)
    for start, end in zip(starts[lasting], ends[lasting], strict=True):
        active[max(0, start - _HANGOVER) : end + _HANGOVER] = True
    return active


def active_runs(active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the one-past-last index of each run of True in a (T,) bool array."""
    steps = np.diff(np.concatenate([[0], active.astype(np.int8), [0]]))
    return np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)


def joined_runs(starts: np.ndarray, ends: np.ndarray, shortest_gap: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and ends of runs after joining those with less than ``shortest_gap`` between them."""
    apart = starts[1:] - ends[:-1] >= shortest_gap
    return np.append(starts[:1], starts[1:][apart]), np.append(ends[:-1][apart], ends[-1:])


def _levels_db(wave: np.ndarray, num_hops: int) -> np.ndarray:
    """Return the level, in dB, of two hops centred on each hop, after pre-emphasis."""
    crisp = np.append(wave[:1], wave[1:] - _PRE_EMPHASIS * wave[:-1]).astype(np.float64)
    energy = np.concatenate([[0.0], np.cumsum(crisp * crisp)])
    first = np.arange(num_hops) * HOP_SAMPLES - HOP_SAMPLES // 2
    last = np.minimum(first + 2 * HOP_SAMPLES, len(wave))
    first = np.maximum(first, 0)
    return 10 * np.log10((energy[last] - energy[first]) / (last - first) + 1e-12)

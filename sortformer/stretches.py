"""Segments of one slot, computed as its probabilities arrive: hysteresis, padding, minimum durations, rounding.

A stretch is a segment of speech. Stretches go through NVIDIA's stages: padded and merged where they touch, dropped if
too short, merged across short gaps, rounded to ticks of 10 ms and merged where they touch. Each stage holds back its
last stretch until no later one can be merged with it. All comparisons are strict, and times are whole microseconds.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sortformer.config.postprocess import PostprocessConfig

__all__ = ["Span", "Stretches", "stretches"]

Span = tuple[int, int]  # start and end

_TICK_US = 10_000
_NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Stretches:
    """The stretches of a slot that later audio may still change, one for each stage."""

    since: int | None = None  # tick at which it began to speak; None while silent
    padded: Span | None = None  # the last padded stretch, in microseconds
    bridged: Span | None = None  # the last one that is long enough, in microseconds
    rounded: Span | None = None  # the last one in ticks

    def hear(self, config: PostprocessConfig, column: np.ndarray, before: int) -> tuple[Self, np.ndarray]:
        """Process the slot's values in the next ticks (t,), after ``before`` earlier ones.

        Returns:
            The new state, and the stretches that are now final: (K, 2) start and end in ticks.
        """
        now = before + len(column)
        borders = _borders(column, config, self.since is not None) + before
        if self.since is not None:
            borders = np.append(self.since, borders)
        since = int(borders[-1]) if len(borders) % 2 else None
        closed = borders[: len(borders) // 2 * 2].reshape(-1, 2)
        return replace(self, since=since)._settle(config, closed, now if since is None else since, now)

    def end(self, config: PostprocessConfig, now: int) -> tuple[Self, np.ndarray]:
        """Close all after ``now`` ticks, as :meth:`hear` returns it; what is open stops 10 ms early, as NVIDIA's."""
        still_open = [] if self.since is None else [self.since, now - 1]
        closed = np.array(still_open, dtype=np.int64).reshape(-1, 2)
        return replace(self, since=None)._settle(config, closed, _NEVER, now)

    def earliest(self, config: PostprocessConfig, now: int) -> int:
        """Return the earliest tick at which a stretch that is not final may begin, after ``now`` ticks."""
        if self.rounded:
            return self.rounded[0]
        if pending := self.bridged or self.padded:
            return _tick(pending[0])
        pad_on, *_ = _in_microseconds(config)
        return _tick(max(0, (now if self.since is None else self.since) * _TICK_US - pad_on))

    def _settle(
        self, config: PostprocessConfig, closed: np.ndarray, open_from: int, now: int
    ) -> tuple[Self, np.ndarray]:
        """Add closed stretches (K, 2), in ticks; nothing that comes later starts before the tick ``open_from``."""
        pad_on, pad_off, min_on, min_off = _in_microseconds(config)
        spans = np.maximum(closed * _TICK_US + (-pad_on, pad_off), 0)
        frontier = max(0, open_from * _TICK_US - pad_on)
        spans, padded = _join(self.padded, spans, frontier, gap=0)
        frontier = padded[0] if padded else frontier
        spans = spans[spans[:, 1] - spans[:, 0] >= min_on]
        spans, bridged = _join(self.bridged, spans, frontier, gap=min_off - 1)
        frontier = bridged[0] if bridged else frontier
        spans = np.minimum(_tick(spans), now)
        spans = spans[spans[:, 0] < spans[:, 1]]
        spans, rounded = _join(self.rounded, spans, _tick(frontier), gap=0)
        return replace(self, padded=padded, bridged=bridged, rounded=rounded), spans


def stretches(config: PostprocessConfig, column: np.ndarray, each: int) -> np.ndarray:
    """Return the stretches of a slot, (K, 2) start and end in ticks, from all its values (T,) of ``each`` ticks."""
    now = each * len(column)
    borders = _borders(column, config, each=each)
    if len(borders) % 2:
        borders = np.append(borders, now - 1)  # as `Stretches.end`
    return Stretches()._settle(config, borders.reshape(-1, 2), _NEVER, now)[1]


def _borders(column: np.ndarray, config: PostprocessConfig, before: bool = False, each: int = 1) -> np.ndarray:
    """Return the ticks at which a slot begins or ends to speak, by turns, from values (T,) that last ``each`` ticks.

    It speaks from one above ``onset`` until one below ``offset``. The tick that ends a stretch cannot start the next,
    so one that is above ``onset`` and below ``offset`` (where ``offset`` is the greater) turns speech into silence and
    silence into speech. ``before`` says whether the slot spoke before the first tick.
    """
    above, below = column > config.onset, column < config.offset
    turning, frames = above & below, np.arange(len(column))
    decided = np.maximum.accumulate(np.where(above != below, frames, -1))  # last frame that leaves no doubt
    turns = each * np.cumsum(turning)
    known = decided >= 0
    turns_since = turns - np.where(known, turns[decided], 0)
    spoken = np.where(known, above[decided], before) ^ (turns_since % 2 == 1)  # at the last tick of each frame
    count = np.where(turning, each, np.diff(spoken, prepend=before))
    ticks = np.repeat(each * frames - np.cumsum(count) + count, count)
    return ticks + np.arange(len(ticks))


def _join(pending: Span | None, spans: np.ndarray, frontier: int, gap: int) -> tuple[np.ndarray, Span | None]:
    """Join stretches at most ``gap`` apart; return those that nothing from ``frontier`` on can join, and the last."""
    if pending:
        spans = np.concatenate([[pending], spans])
    if len(spans) == 0:
        return spans, None
    reach = np.maximum.accumulate(spans[:, 1])
    apart = spans[1:, 0] - reach[:-1] > gap
    spans = np.stack([spans[np.append(True, apart), 0], reach[np.append(apart, True)]], axis=1)
    start, end = spans[-1].tolist()
    return (spans, None) if frontier - end > gap else (spans[:-1], (start, end))


def _tick(time_us: Any) -> Any:
    """The nearest tick of one time or of many."""
    return (time_us + _TICK_US // 2) // _TICK_US


def _in_microseconds(config: PostprocessConfig) -> tuple[int, ...]:
    """``pad_on``, ``pad_off``, ``min_on`` and ``min_off``."""
    return tuple(round(1e6 * time) for time in (config.pad_on_s, config.pad_off_s, config.min_on_s, config.min_off_s))

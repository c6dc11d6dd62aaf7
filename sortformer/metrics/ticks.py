"""Diarization errors counted in ticks of 10 ms: fast for many hypotheses of one reference, as in tuning."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from sortformer.annotation import Turn, merged
from sortformer.metrics.protocol import Protocol
from sortformer.metrics.region import Parts

__all__ = ["TickTruth", "in_ticks", "tick"]


@dataclass(frozen=True, slots=True, eq=False)
class TickTruth:
    """The reference of one recording as stretches of constant activity, which are faster to score against than turns.

    They hold cumulative counts of the scored ticks in which each of K speakers is active, and of those in which 0, 1,
    ..., N - 1 of them are.
    """

    starts: np.ndarray  # (P,) first tick of each stretch
    counted: np.ndarray  # (P, K + N) bool, whether the ticks of a stretch count for each speaker and number of speakers
    before: np.ndarray  # (P, K + N) counts of the ticks before each stretch
    length: int  # in ticks
    speakers: int  # K

    @classmethod
    def of(
        cls,
        reference: Iterable[Turn],
        parts: Parts,
        protocol: Protocol,
        duration: float,
        first: int,
    ) -> "TickTruth":
        """Return the reference made from turns; arguments are those of :func:`in_ticks`."""
        active, kept = in_ticks(reference, parts, protocol, duration, first)
        number = active.sum(axis=1)[:, None] == np.arange(active.shape[1] + 1)
        counted = np.concatenate([active, number], axis=1) & kept[:, None]
        starts = np.flatnonzero(np.append(True, (counted[1:] != counted[:-1]).any(axis=1)))
        counted, lasting = counted[starts], np.diff(starts, append=len(kept))
        before = np.cumsum(counted * lasting[:, None], axis=0) - counted * lasting[:, None]
        return cls(starts, counted, before, len(kept), active.shape[1])

    def errors(self, slots: Sequence[np.ndarray]) -> int:
        """Return the errors, in ticks times speakers, of slots that are each active in stretches (n, 2) of ticks."""
        borders = np.minimum(np.concatenate(slots).ravel(), self.length)
        ticks, order = self._until(borders), np.argsort(borders, kind="stable")
        together = np.zeros((len(slots), self.speakers))
        of = np.repeat(np.arange(len(slots)), [len(spans) for spans in slots])
        np.add.at(together, of, (ticks[1::2] - ticks[::2])[:, : self.speakers])
        at_once = np.cumsum(np.tile([1, -1], len(of))[order])[:-1]  # active slots between one border and the next
        too_many = np.maximum(at_once[:, None] - np.arange(self.speakers + 1), 0)
        false_alarm = (np.diff(ticks[order, self.speakers :], axis=0) * too_many).sum()
        correct = together[linear_sum_assignment(together, maximize=True)].sum()
        return int(self._until(np.array([self.length]))[:, : self.speakers].sum() + false_alarm - correct)

    def _until(self, ticks: np.ndarray) -> np.ndarray:
        """Return the counts (n, K + N) before each of ``ticks`` (n,)."""
        at = np.searchsorted(self.starts, ticks, side="right") - 1
        return self.before[at] + self.counted[at] * (ticks - self.starts[at])[:, None]


def in_ticks(
    reference: Iterable[Turn], parts: Parts, protocol: Protocol, duration: float, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the activity (T, K) of the speakers, sorted by name, and which ticks are scored (T,).

    Args:
        reference: turns, with times relative to their file.
        parts: those to score, start and end relative to the file.
        duration: in seconds; extended to the end of the last turn if that is later.
        first: the tick of the file that is tick 0 here.
    """
    reference = merged(reference)  # no border, and so no collar, between touching turns of a speaker
    speakers = {speaker: column for column, speaker in enumerate(sorted({turn.speaker for turn in reference}))}
    length = max([1, tick(duration), *(tick(turn.end) - first for turn in reference)])
    active, kept = np.zeros((length, len(speakers)), dtype=bool), np.zeros(length, dtype=bool)
    for turn in reference:
        active[_ticks(turn.start, turn.end, first), speakers[turn.speaker]] = True
    for start, end in parts:
        kept[_ticks(start, end, first)] = True
    if protocol.collar_s:
        for border in (border for turn in reference for border in (turn.start, turn.end)):
            kept[_ticks(border - protocol.collar_s, border + protocol.collar_s, first)] = False
    if protocol.skip_overlap:
        kept &= active.sum(axis=1) < 2
    return active, kept


def tick(seconds: float) -> int:
    """Return the tick nearest to a time in seconds."""
    return round(100 * seconds)


def _ticks(start: float, end: float, first: int) -> slice:
    return slice(max(0, tick(start) - first), max(0, tick(end) - first))

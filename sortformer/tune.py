"""Tune post-processing on recordings whose truth is known: the fewest errors, and how sure that is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sortformer.annotation import Turn, merged, shifted
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.estimates import Probabilities
from sortformer.evaluate import Parts, Report, score_recordings
from sortformer.metrics.bootstrap import ratio_interval
from sortformer.metrics.frames import frame_der
from sortformer.metrics.protocol import FULL, Protocol

__all__ = ["Tuned", "tune"]

_THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(2, 18))
_DURATIONS = (0.0, 0.04, 0.08, 0.12, 0.16, 0.24, 0.32, 0.4, 0.56, 0.72, 0.96)
_DECISIONS = ("slots", "least_error")
# Both thresholds at once first: apart they only widen or narrow the hysteresis.
_AXES = (
    (("decision",), _DECISIONS),
    *((names, _THRESHOLDS) for names in (("onset", "offset"), ("onset",), ("offset",))),
    *(((name,), _DURATIONS) for name in ("min_off_s", "min_on_s", "pad_on_s", "pad_off_s")),
)


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best settings found, and the score with them and before."""

    postprocess: PostprocessConfig
    before: Report
    after: Report

    @property
    def gain(self) -> float:
        """By how much the DER fell, as a fraction of the reference speech."""
        return self.before.der.rate - self.after.der.rate

    def spread(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the gain: a bootstrap over recordings, the same ones before and after.

        None where there are fewer than two. It says how the gain varies with the choice of recordings, not what is
        lost by having tuned on them.
        """
        if len(self.before.rows) < 2:
            return None
        saved = [a.der.errors - b.der.errors for a, b in zip(self.before.rows, self.after.rows, strict=True)]
        return ratio_interval(saved, [row.der.total for row in self.before.rows])


def tune(
    probabilities: Mapping[str, Probabilities],
    references: Mapping[str, tuple[Turn, ...]],
    start: PostprocessConfig,
    *,
    uem: Mapping[str, Parts] | None = None,
    starts_s: Mapping[str, float] | None = None,
    protocol: Protocol = FULL,
) -> Tuned:
    """Return the settings with the lowest DER, found from ``start`` by going through one setting after the other.

    The descent ends when a whole round changes nothing. Without a UEM whole recordings are scored. ``starts_s`` says
    where those that are windows of files begin in them: references and UEM are in the time of the files.

    Raises:
        InputError: when there is no recording, one is on one side only or missing in the UEM, or nobody speaks in the
            references.
    """
    if not probabilities:
        raise InputError("tuning needs at least one recording with its reference")
    starts = {uri: (starts_s or {}).get(uri, 0.0) for uri in probabilities}
    regions = uem or {uri: ((starts[uri], starts[uri] + found.duration),) for uri, found in probabilities.items()}

    def decided(settings: PostprocessConfig) -> dict[str, tuple[Turn, ...]]:
        return {uri: found.turns(settings).turns for uri, found in probabilities.items()}

    def errors(settings: PostprocessConfig) -> float:
        return sum(ticks[uri].errors(found) for uri, found in decided(settings).items())

    def scored(settings: PostprocessConfig) -> Report:
        placed = {uri: shifted(found, starts[uri]) for uri, found in decided(settings).items()}
        return score_recordings(references, placed, uem=regions, protocol=protocol)

    before = scored(start)
    if not before.der.total:
        raise InputError(
            f"nobody speaks in what the protocol {protocol} scores of these references: there is nothing to tune by"
        )
    ticks = {
        uri: _Ticks.of(references[uri], regions[uri], protocol, found.duration, _tick(starts[uri]))
        for uri, found in probabilities.items()
    }
    best, fewest = start, errors(start)
    improving = True
    while improving:
        improving = False
        for names, values in _AXES:
            others = [replace(best, **dict.fromkeys(names, value)) for value in values]
            found, candidate = min(((errors(each), each) for each in others if each != best), key=lambda pair: pair[0])
            if found < fewest:
                best, fewest, improving = candidate, found, True
    return Tuned(best, before, scored(best))


@dataclass(frozen=True, slots=True, eq=False)
class _Ticks:
    """The truth about one recording every 10 ms, from its start on: quicker to compare with than turns."""

    reference: np.ndarray  # (T, K) bool
    kept: np.ndarray  # (T,) bool, what is scored

    @classmethod
    def of(
        cls, reference: tuple[Turn, ...], parts: Parts, protocol: Protocol, duration: float, first: int = 0
    ) -> "_Ticks":
        """Take the truth from the tick ``first`` of its file on."""
        reference = merged(reference)  # where two turns of a speaker touch, there is no border and no collar
        count = max([_tick(duration), *(_tick(turn.end) - first for turn in reference)])
        active = _active(reference, count, first)
        kept = np.zeros(count, dtype=bool)
        for start, end in parts:
            kept[_ticks(start, end, first)] = True
        if protocol.collar_s:
            for border in (border for turn in reference for border in (turn.start, turn.end)):
                kept[_ticks(border - protocol.collar_s, border + protocol.collar_s, first)] = False
        if protocol.skip_overlap:
            kept &= active.sum(axis=1) < 2
        return cls(active[kept], kept)

    def errors(self, found: tuple[Turn, ...]) -> float:
        return frame_der(_active(found, len(self.kept))[self.kept], self.reference).errors


def _active(found: tuple[Turn, ...], count: int, first: int = 0) -> np.ndarray:
    """Who of the speakers (K) is active every 10 ms from the tick ``first`` on, (count, K)."""
    speakers = {speaker: column for column, speaker in enumerate(sorted({turn.speaker for turn in found}))}
    active = np.zeros((count, len(speakers)), dtype=bool)
    for turn in found:
        active[_ticks(turn.start, turn.end, first), speakers[turn.speaker]] = True
    return active


def _ticks(start: float, end: float, first: int) -> slice:
    return slice(max(0, _tick(start) - first), max(0, _tick(end) - first))


def _tick(seconds: float) -> int:
    return round(100 * seconds)

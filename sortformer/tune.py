"""Tune post-processing on recordings with references, for the lowest DER, with a confidence interval of the gain."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from sortformer.annotation import Turn, Turns, shifted
from sortformer.audio import AudioSource
from sortformer.config.checks import by_recording
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import as_postprocess
from sortformer.diarizer import Diarizer
from sortformer.errors import InputError, listed
from sortformer.estimates import Probabilities
from sortformer.evaluate import Report, score_recordings
from sortformer.heard import Heard, Progress, report
from sortformer.metrics.calibration import fitted, judged
from sortformer.metrics.protocol import FULL, Protocol, protocol_named
from sortformer.metrics.region import Parts
from sortformer.metrics.ticks import TickTruth, tick
from sortformer.offline import in_windows
from sortformer.offline import probabilities as probabilities_of
from sortformer.postprocess import decisive
from sortformer.stretches import stretches

__all__ = ["Tuned", "tune", "voices_by_distance"]

_THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(2, 18))
_DURATIONS = (0.0, 0.04, 0.08, 0.12, 0.16, 0.24, 0.32, 0.4, 0.56, 0.72, 0.96, 1.2, 1.5)
_DISTANCES = tuple(round(0.04 * step, 2) for step in range(4, 21))
_DECISIONS = ("slots", "least_error")
_SURE = 1.25  # standard errors by which another distance must be better


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best settings found, and the scores before and after."""

    postprocess: PostprocessConfig
    before: Report
    after: Report

    @property
    def gain(self) -> float:
        """The reduction of the DER, as a fraction of the reference speech."""
        return self.after.gain(self.before)

    def spread(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the gain by a paired bootstrap over recordings; None for fewer than two.

        It shows how the gain varies with the choice of recordings, not how much of it is due to overfitting them.
        """
        return self.after.gain_interval(self.before)


def voices_by_distance(
    diarizer: Diarizer, audio: AudioSource, *, sample_rate: int | None = None, channel: int | None = None
) -> dict[float, Probabilities]:
    """Process a recording once, whole; return its probabilities for each clustering distance to be searched.

    The diarizer's own distance is among them. Embeddings are not kept; the result takes 1.5 MB per hour of a recording
    with eight voices, for each distance that makes a difference. Arguments and errors as in a call of a diarizer.

    Raises:
        InputError: when its post-processing does not cluster.
    """
    clustering = diarizer.postprocess.clustering
    if clustering is None:
        raise InputError("there is no clustering distance to search: the post-processing does not cluster")
    heard, result, last = Heard(audio, sample_rate, channel), dict[float, Probabilities](), None
    found = in_windows(diarizer.model, heard.blocks(), diarizer.exit_confidence)
    for distance in sorted({*_DISTANCES, clustering.threshold}):
        data = found.voices(replace(clustering, threshold=distance))
        if last is None or not np.array_equal(data, last.data):
            last = probabilities_of(diarizer.model, heard, data, found.layers)
        result[distance] = last
    return result


def tune(
    probabilities: Mapping[str, Probabilities],
    references: Mapping[str, Turns],
    start: PostprocessConfig | str,
    *,
    by_distance: Mapping[str, Mapping[float, Probabilities]] | None = None,
    uem: Mapping[str, Parts] | None = None,
    starts_s: Mapping[str, float] | None = None,
    protocol: str | Protocol = FULL,
    progress: Progress | None = None,
) -> Tuned:
    """Return the settings with the lowest DER, found from ``start`` by coordinate descent.

    The descent ends when a whole round changes nothing. Without a UEM whole recordings are scored. ``starts_s`` are the
    start times of windows in their files: references and UEM are in the time of the files.
    With ``by_distance``, the probabilities of the same recordings for other clustering distances
    (:func:`voices_by_distance`), the distance is searched, too. It overfits a few recordings more easily than other
    settings, so another distance is chosen only if, averaged with its neighbours, it gains more than 1.25 times the
    standard error over recordings, of which at least two are needed (a rule like that of Breiman et al.,
    "Classification and Regression Trees", 1984, section 3.4.3). Finally the confidence of turns is fitted to the
    reference, if there are enough turns (``metrics.calibration``).
    ``progress`` gets the progress of each round (stages ``search, round 1``, ...), and may cancel the search.

    Raises:
        Cancelled: if ``progress`` returns False.
        ConfigError: when there is no protocol, or no post-processing to start from, of that name.
        InputError: when the probabilities, references or ``by_distance`` are not a mapping, there is no recording, one
            lacks its reference, probabilities, UEM or ``by_distance``, or nobody speaks in the scored parts of the
            references.
    """
    start, protocol = as_postprocess(start), protocol_named(protocol)
    by_recording("probabilities", probabilities)
    by_recording("references", references)
    if not probabilities:
        raise InputError("tuning needs at least one recording with its reference")
    starts = {uri: (starts_s or {}).get(uri, 0.0) for uri in probabilities}
    if uem is None:
        uem = {uri: ((starts[uri], starts[uri] + found.duration),) for uri, found in probabilities.items()}
    if missing := sorted(set(probabilities) - set(uem)):
        raise InputError(f"the UEM has no regions of {listed(missing)}; add them, or tune without it")
    regions = {uri: tuple(parts) for uri, parts in uem.items()}

    by_recording("by_distance", by_distance or {})
    for uri, each in (by_distance or {}).items():
        if not isinstance(each, Mapping):
            got = type(each).__name__
            raise InputError(f"by_distance of {uri!r} must be what voices_by_distance returns, a mapping, got {got}")
    if by_distance and (apart := sorted(set(by_distance) ^ set(probabilities))):
        raise InputError(
            f"by_distance and the probabilities must have the same recordings; {apart[0]!r} is only in one of them"
        )
    heard = _by_clustering(start.clustering, probabilities, by_distance or {})

    def turns(settings: PostprocessConfig) -> dict[str, tuple[Turn, ...]]:
        return {uri: shifted(each.turns(settings), starts[uri]) for uri, each in heard[settings.clustering].items()}

    def scored(settings: PostprocessConfig) -> Report:
        return score_recordings(references, turns(settings), uem=regions, protocol=protocol)

    before = scored(start)
    if not before.der.total:
        raise InputError(
            f"these references have no speech that the protocol {protocol} scores: there is nothing to tune on"
        )
    truths = {
        uri: TickTruth.of(references[uri], regions[uri], protocol, found.duration, tick(starts[uri]))
        for uri, found in probabilities.items()
    }

    def errors(candidates: Sequence[PostprocessConfig]) -> np.ndarray:
        alike = [(clustering, [*each]) for clustering, each in groupby(candidates, lambda each: each.clustering)]
        counts = [
            [truth.errors(slots) for clustering, each in alike for slots in _spoken(heard[clustering][uri], each)]
            for uri, truth in truths.items()
        ]
        return np.array(counts)  # (recordings, candidates)

    who = _Axis(("clustering",), tuple(heard), _surely_better)
    best = _search(start, (who, *_AXES), errors, progress)  # speakers first, then times
    found = turns(replace(best, confidence=None))
    confidence = fitted([turn for uri in found for turn in judged(references[uri], found[uri], regions[uri])])
    best = replace(best, confidence=confidence or best.confidence)
    return Tuned(best, before, scored(best))


def _by_clustering(
    own: ClusteringConfig | None,
    probabilities: Mapping[str, Probabilities],
    by_distance: Mapping[str, Mapping[float, Probabilities]],
) -> dict[ClusteringConfig | None, Mapping[str, Probabilities]]:
    """Return the recordings by clustering: the model's own, and those given for all recordings, sorted by distance."""
    if own is None or not by_distance:
        return {own: probabilities}
    given = {uri: {**each, own.threshold: probabilities[uri]} for uri, each in by_distance.items()}
    return {
        replace(own, threshold=distance): {uri: each[distance] for uri, each in given.items()}
        for distance in sorted(set.intersection(*(set(each) for each in given.values())))
    }


def _spoken(found: Probabilities, candidates: Sequence[PostprocessConfig]) -> Iterator[list[np.ndarray]]:
    """Yield for each candidate the stretches of each slot, (n, 2), start and end in ticks."""
    end = tick(found.duration)
    kinds = {each.decision: each for each in candidates}
    slots = {kind: np.ascontiguousarray(decisive(found.data, each).T) for kind, each in kinds.items()}
    for each in candidates:
        spans = (stretches(each, slot, tick(found.step_s)) for slot in slots[each.decision])
        yield [np.clip(own, 0, end) for own in spans]


def _search(
    start: PostprocessConfig,
    axes: Sequence["_Axis"],
    errors: Callable[[Sequence[PostprocessConfig]], np.ndarray],
    progress: Progress | None,
) -> PostprocessConfig:
    """Return the settings with the fewest errors, found from ``start`` by searching one axis after the other."""
    best, fewest, improving, rounds = start, int(errors([start]).sum()), True, 0
    while improving:
        improving, rounds = False, rounds + 1
        for done, axis in enumerate(axes):
            report(progress, f"search, round {rounds}", done, len(axes))
            others = [replace(best, **dict.fromkeys(axis.names, value)) for value in axis.values]
            found = errors(others)
            choice = axis.choose(found, np.array([other == best for other in others]))
            if (count := int(found[:, choice].sum())) < fewest:
                best, fewest, improving = others[choice], count, True
    return best


def _fewest(errors: np.ndarray, now: np.ndarray) -> int:
    """Return the index of the setting with the fewest ``errors`` (recordings, settings)."""
    del now
    return int(errors.sum(axis=0).argmin())


def _surely_better(errors: np.ndarray, now: np.ndarray) -> int:
    """Return the index of the setting to choose, given ``errors`` (recordings, settings) along an axis.

    Errors are first averaged with those of the neighbours. The chosen setting is the one whose gain over ``now`` most
    exceeds 1.25 times its standard error over recordings; a gain in one recording alone is one standard error. If none
    exceeds it, or there is only one recording, the setting stays.
    """
    if len(errors) < 2:
        return int(now.argmax())
    padded = np.pad(errors, ((0, 0), (1, 1)), mode="edge")
    together = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    saved = together[:, now] - together
    return int((saved.sum(axis=0) - _SURE * np.sqrt(len(saved) * saved.var(axis=0, ddof=1))).argmax())


class _Axis(NamedTuple):
    """Settings that share one value, and the values to try.

    ``choose`` returns the index of the value to choose, given the errors (recordings, values), and the current value as
    a mask (values,), all False if it is not among them.
    """

    names: tuple[str, ...]
    values: Sequence[Any]
    choose: Callable[[np.ndarray, np.ndarray], int] = _fewest


# Both thresholds together first: alone, each only widens or narrows the hysteresis.
_AXES = (
    _Axis(("decision",), _DECISIONS),
    *(_Axis(names, _THRESHOLDS) for names in (("onset", "offset"), ("onset",), ("offset",))),
    *(_Axis((name,), _DURATIONS) for name in ("min_off_s", "min_on_s", "pad_on_s", "pad_off_s")),
)

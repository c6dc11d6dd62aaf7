"""Calibrated early exit: it exits where this costs nothing, and not where it costs too much."""

from functools import partial

import numpy as np
import pytest

from sortformer.calibrate import calibrate_exit
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import ConfigError, InputError
from sortformer.estimates import Estimates, LayerEstimate, Probabilities
from sortformer.postprocess import turns

SETTINGS = PostprocessConfig()
calibrate = partial(calibrate_exit, tolerance=0.2, error=0.2)
STEP_S = 0.08


def probabilities(rng: np.random.Generator) -> np.ndarray:
    return np.repeat(rng.random((8, 2)) < 0.5, 10, axis=0).astype(np.float32)


def layer(number: int, data: np.ndarray, confidence: float | None) -> LayerEstimate:
    return LayerEstimate(number, data, np.zeros(2), np.arange(2), data, confidence)


def recording(seed: int, *, wrong_below: float) -> Estimates:
    """Return estimates with a random confidence at their only exit, which are wrong if it is below ``wrong_below``."""
    rng = np.random.default_rng(seed)
    end = probabilities(rng)
    confidence = float(rng.uniform(0.3, 1.0))
    said = end if confidence >= wrong_below else probabilities(rng)
    first = layer(1, probabilities(rng), None)
    return Estimates((first, layer(2, said, confidence)), Probabilities(end, STEP_S, len(end) * STEP_S, layers=4))


def recordings(count: int = 40, wrong_below: float = 0.7) -> dict[str, Estimates]:
    return {f"call_{seed}": recording(seed, wrong_below=wrong_below) for seed in range(count)}


def truth_of(estimates: dict[str, Estimates]):
    return {
        uri: turns(found.output.data, SETTINGS, STEP_S, duration=found.output.duration).turns
        for uri, found in estimates.items()
    }


def test_it_stops_as_early_as_costs_no_more_than_tolerated():
    estimates = recordings()
    found = calibrate(estimates, SETTINGS)
    assert found.confidence is not None
    assert 0.4 < found.confidence < 0.75
    assert found.loss < 0.2
    leaving = [each.layers[1].confidence >= found.confidence for each in estimates.values()]
    assert found.layers == pytest.approx(4 - 2 * np.mean(leaving))
    bolder = calibrate_exit(estimates, SETTINGS, tolerance=0.5, error=0.2)
    assert bolder.confidence < found.confidence
    assert bolder.layers < found.layers


def test_against_the_truth_only_what_gets_worse_counts():
    estimates = recordings(wrong_below=2.0)  # the exit is always wrong
    early = {
        uri: turns(found.layers[1].ordered, SETTINGS, STEP_S, duration=found.output.duration).turns
        for uri, found in estimates.items()
    }
    against_the_end = calibrate(estimates, SETTINGS)
    assert against_the_end.confidence is not None
    assert against_the_end.confidence > 0.8
    assert calibrate(estimates, SETTINGS, truth_of(estimates)) == against_the_end
    assert calibrate(estimates, SETTINGS, early).confidence == 0.05


def test_where_even_the_surest_are_wrong_nothing_stops():
    estimates = recordings(wrong_below=2.0)
    for found in estimates.values():
        object.__setattr__(found.layers[1], "confidence", 0.995)
    found = calibrate(estimates, SETTINGS)
    assert (found.confidence, found.loss, found.layers) == (None, 0.0, 4.0)


def test_an_exit_exactly_as_sure_as_the_confidence_found_is_taken():
    estimates = recordings(wrong_below=0.0)
    for found in estimates.values():
        object.__setattr__(found.layers[1], "confidence", 0.05)
    found = calibrate(estimates, SETTINGS)
    assert (found.confidence, found.loss, found.layers) == (0.05, 0.0, 2.0)


def test_a_recording_that_loses_more_than_all_counts_as_one_that_loses_all():
    estimates = recordings(wrong_below=0.0)
    little, much = np.zeros((80, 2), np.float32), np.ones((80, 2), np.float32)
    little[:10, 0] = 1
    output = Probabilities(little, STEP_S, len(little) * STEP_S, layers=4)
    estimates["call_0"] = Estimates((layer(1, much, None), layer(2, much, 1.0)), output)
    found = calibrate(estimates, SETTINGS)
    assert (found.confidence, found.loss) == (0.05, pytest.approx(1 / 40))


def test_too_few_recordings_are_refused_with_how_many_it_takes():
    with pytest.raises(InputError, match="needs at least 59 recordings to calibrate, but there are 20"):
        calibrate_exit(recordings(20), SETTINGS)


def test_a_recording_without_its_reference_is_refused():
    estimates = recordings()
    references = truth_of(estimates)
    del references["call_7"]
    with pytest.raises(InputError, match=r"estimates must be a mapping by the ids of recordings, .*, got list"):
        calibrate_exit([], PostprocessConfig())  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"references must be a mapping by the ids of recordings, .*, got list"):
        calibrate(estimates, SETTINGS, [*references.values()])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="no reference for 'call_7'"):
        calibrate(estimates, SETTINGS, references)


@pytest.mark.parametrize("wrong", [{"tolerance": 0.0}, {"tolerance": 1.0}, {"error": 0.0}])
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ConfigError, match="of a calibration must be between 0 and 1"):
        calibrate_exit(recordings(1), SETTINGS, **wrong)


def test_a_model_with_one_estimate_is_refused():
    estimates = {uri: Estimates(found.layers[:1], found.output) for uri, found in recordings().items()}
    with pytest.raises(ConfigError, match="fewer than two layers"):
        calibrate(estimates, SETTINGS)

"""Tuning: it recovers planted settings, never makes results worse, and reports an interval."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer import audio
from sortformer.annotation import Turn
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.confidence import ConfidenceConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import POSTPROCESS_PRESETS
from sortformer.diarizer import Diarizer
from sortformer.errors import Cancelled, InputError
from sortformer.estimates import Probabilities
from sortformer.metrics.frames import frame_der
from sortformer.metrics.protocol import protocol_named
from sortformer.metrics.ticks import TickTruth, in_ticks
from sortformer.offline import in_windows
from sortformer.postprocess import turns
from sortformer.tune import Tuned, _spoken, _surely_better, tune, voices_by_distance
from tests.strategies import probabilities as some_probabilities
from tests.test_postprocess import configs

STEP_S = 0.08


def recording(seed: int) -> Probabilities:
    """Two speakers in stretches of about a second, with probabilities around 0.3 and 0.1 instead of 1 and 0."""
    rng = np.random.default_rng(seed)
    speaks = np.repeat(rng.random((8, 2)) < 0.5, 12, axis=0)
    speaks[:12] = [True, False]
    data = np.where(speaks, 0.3, 0.1) + rng.uniform(-0.05, 0.05, speaks.shape)
    return Probabilities(data.astype(np.float32), STEP_S, len(data) * STEP_S)


def truth_of(found: Probabilities, settings: PostprocessConfig) -> tuple[Turn, ...]:
    return turns(found.data, settings, STEP_S, duration=found.duration).turns


@pytest.fixture(scope="module")
def probabilities() -> dict[str, Probabilities]:
    return {f"call_{seed}": recording(seed) for seed in range(3)}


@pytest.fixture(scope="module")
def references(probabilities: dict[str, Probabilities]) -> dict[str, tuple[Turn, ...]]:
    hidden = PostprocessConfig(onset=0.2, offset=0.2, min_off_s=0.16)
    return {uri: truth_of(found, hidden) for uri, found in probabilities.items()}


@pytest.fixture(scope="module")
def tuned(probabilities, references) -> Tuned:
    return tune(probabilities, references, PostprocessConfig())


def test_it_finds_the_thresholds_that_made_the_truth(tuned):
    assert tuned.before.der.rate == 1  # nobody is heard at 0.5
    assert tuned.after.der.rate == 0
    assert 0.15 <= tuned.postprocess.onset <= 0.25
    assert tuned.gain == 1
    assert tuned.spread() == (1, 1)


def test_pauses_of_more_than_a_second_are_filled_where_the_truth_does_not_have_them():
    data = np.full((250, 1), 0.9, np.float32)
    data[50:65], data[130:147] = 0.0, 0.0  # 1.2 s and 1.36 s
    heard = {"call": Probabilities(data, STEP_S, 20.0)}
    assert tune(heard, {"call": (Turn(0, 19.99, "a"),)}, PostprocessConfig()).postprocess.min_off_s == 1.5


def test_what_is_best_stays(tuned, probabilities, references):
    again = tune(probabilities, references, tuned.postprocess)
    assert again.postprocess == tuned.postprocess
    assert again.gain == 0


def test_a_confidence_that_was_set_stays_where_there_are_too_few_turns_to_fit_another(tuned, probabilities, references):
    start = replace(tuned.postprocess, confidence=ConfidenceConfig(2.0, 0.5))
    assert tune(probabilities, references, start).postprocess == start


def test_confidence_is_fitted_to_probabilities_and_not_to_the_confidence_before(
    tuned, probabilities, references, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sortformer.metrics.calibration.FEWEST_TURNS", 2)
    before = (ConfidenceConfig(), ConfidenceConfig(0.5, 3.0))
    first, second = (
        tune(probabilities, references, replace(tuned.postprocess, confidence=each)).postprocess for each in before
    )
    assert first == second
    assert first.confidence not in before


def test_the_spread_is_around_the_gain(probabilities, references):
    noisy = dict(references)
    noisy["call_0"] = (Turn(0.0, 7.68, "nobody"),)
    tuned = tune(probabilities, noisy, PostprocessConfig(onset=0.3, offset=0.3))
    low, high = tuned.spread()
    assert low < tuned.gain < high
    assert tuned.spread() == (low, high)


def test_one_recording_has_no_spread(probabilities, references):
    tuned = tune(*({"call_0": each["call_0"]} for each in (probabilities, references)), PostprocessConfig())
    assert tuned.gain == 1
    assert tuned.spread() is None


def test_only_what_the_uem_names_counts(tuned, probabilities, references):
    first_half = {uri: tuple(turn for turn in found if turn.start < 3.8) for uri, found in references.items()}
    regions = {uri: iter([(0.0, 3.8)]) for uri in probabilities}
    again = tune(probabilities, first_half, tuned.postprocess, uem=regions, protocol=protocol_named("fair"))
    assert again.after.der.errors == 0
    assert again.after.protocol.name == "fair"


def test_a_window_is_scored_in_the_time_of_its_file_without_collars_where_it_cuts_turns():
    heard = Probabilities(np.full((125, 1), 0.4, np.float32), STEP_S, 10.0)
    truth = {"call": (Turn(0, 2, "b"), Turn(5, 30, "a"))}
    tuned = tune({"call": heard}, truth, PostprocessConfig(), starts_s={"call": 10.0}, protocol=protocol_named("fair"))
    assert (tuned.before.der.total, tuned.before.der.miss) == (10, 10)
    assert tuned.after.der.errors == 0
    kept = in_ticks(truth["call"], [(10.0, 20.0)], protocol_named("fair"), 10.0, 1000)[1]
    assert (kept[:1000].all(), kept[1000:].any()) == (True, False)
    early = in_ticks((Turn(9.9, 12, "a"),), [(10.0, 20.0)], protocol_named("fair"), 10.0, 1000)[1]
    assert np.flatnonzero(~early).tolist() == [*range(15), *range(175, 225)]


DISTANCES = (0.3, 0.4, 0.5, 0.6, 0.7)


@pytest.fixture(scope="module")
def by_distance(references) -> dict[str, dict[float, Probabilities]]:
    """From a distance of 0.6 on there is a single voice, below it is as in the reference."""
    found = {}
    for uri, truth in references.items():
        active, _ = in_ticks(truth, [], protocol_named("full"), 7.68, 0)
        data = np.where(active[4::8], 0.9, 0.1).astype(np.float32)
        two, one = Probabilities(data, STEP_S, 7.68), Probabilities(data.max(axis=1, keepdims=True), STEP_S, 7.68)
        found[uri] = {distance: two if distance < 0.6 else one for distance in DISTANCES}
    return found


def at(distance: float, by_distance: dict[str, dict[float, Probabilities]]) -> dict[str, Probabilities]:
    return {uri: each[distance] for uri, each in by_distance.items()}


def test_a_distance_with_fewer_errors_is_found_where_its_neighbours_have_fewer_too(references, by_distance):
    start = PostprocessConfig(clustering=ClusteringConfig(0.7, max_speakers=12))
    tuned = tune(at(0.7, by_distance), references, start, by_distance=by_distance)
    assert tuned.postprocess.clustering == ClusteringConfig(0.3, max_speakers=12)
    assert tuned.before.der.errors > tuned.after.der.errors == 0


def test_distances_in_another_form_are_refused(references, by_distance):
    probabilities = at(0.7, by_distance)
    for other, told in (([probabilities], "of recordings, .*, got list"), (probabilities, "a mapping, got Probab")):
        with pytest.raises(InputError, match=f"^by_distance .*{told}"):
            tune(probabilities, references, PostprocessConfig(), by_distance=other)  # pyright: ignore


def test_other_distances_of_other_recordings_are_refused(references, by_distance):
    probabilities = at(0.7, by_distance)
    without = dict(list(by_distance.items())[1:])
    for other in (without, by_distance | {"another": by_distance[next(iter(by_distance))]}):
        with pytest.raises(InputError, match="by_distance and the probabilities must have the same recordings"):
            tune(probabilities, references, PostprocessConfig(clustering=ClusteringConfig(0.7)), by_distance=other)


def test_a_distance_that_only_one_of_many_recordings_likes_is_not_taken(references, by_distance):
    start = PostprocessConfig(clustering=ClusteringConfig(0.7))
    copies = {f"{uri}_{k}": uri for uri in references for k in range(4)}
    liked = next(iter(copies))
    voices = {
        copy: by_distance[uri] if copy == liked else dict.fromkeys(DISTANCES, by_distance[uri][0.7])
        for copy, uri in copies.items()
    }
    truths = {copy: references[uri] for copy, uri in copies.items()}
    tuned = tune(at(0.7, voices), truths, start, by_distance=voices)
    assert tuned.postprocess.clustering == start.clustering
    alone, truth = {liked: voices[liked]}, {liked: truths[liked]}
    assert tune(at(0.7, alone), truth, start, by_distance=alone).postprocess.clustering == start.clustering


def test_the_middle_of_good_distances_goes_before_one_that_is_good_alone():
    assert _surely_better(np.tile([9, 0, 9, 4, 4, 4, 9], (3, 1)), np.arange(7) == 6) == 4


def test_a_distance_counts_twice_as_much_as_each_of_its_neighbours():
    assert _surely_better(np.tile([18, 12, 0, 12, 18, 7, 7, 7], (3, 1)), np.arange(8) == 0) == 2


def test_the_first_and_the_last_distance_gain_nothing_by_a_neighbour_that_they_lack():
    assert _surely_better(np.tile([6, 5, 5, 5, 6], (3, 1)), np.arange(5) == 2) == 2


def test_a_distance_that_gains_in_one_recording_alone_is_not_sure_to_be_better():
    alone, elsewhere = [8, 8, 4, 4, 4], [8, 8, 7, 7, 7]
    assert _surely_better(np.array([alone, [5] * 5]), np.arange(5) == 0) == 0
    assert _surely_better(np.array([alone, elsewhere]), np.arange(5) == 0) == 3
    assert _surely_better(np.array([alone, [5] * 5] * 2), np.arange(5) == 0) == 3  # in half of them


def test_a_distance_that_gains_nothing_stays(references, by_distance):
    start = PostprocessConfig(clustering=ClusteringConfig(0.4))
    assert tune(at(0.4, by_distance), references, start, by_distance=by_distance).postprocess == start


def test_voices_by_distance_are_those_of_a_diarizer_of_each(monkeypatch: pytest.MonkeyPatch):
    diarizer = replace(Diarizer.load(), exit_confidence=0.05)
    meeting = audio.read("demos/meeting.wav")
    meeting = np.stack([np.zeros_like(meeting), meeting], axis=1)
    times = []
    monkeypatch.setattr("sortformer.tune.in_windows", lambda *given: (times.append(1), in_windows(*given))[1])
    found = voices_by_distance(diarizer, meeting, sample_rate=16_000, channel=2)
    assert len(times) == 1
    assert diarizer.postprocess.clustering.threshold in found
    assert len(found) > len({id(each) for each in found.values()}) > 1  # what makes no difference is kept once
    for distance in (min(found), max(found)):
        settings = PostprocessConfig(clustering=ClusteringConfig(distance))
        alone = diarizer.probabilities(meeting, sample_rate=16_000, channel=2, postprocess=settings)
        np.testing.assert_array_equal(found[distance].data, alone.data)
        assert (found[distance].duration, found[distance].layers) == (alone.duration, alone.layers)
        assert alone.layers < len(diarizer.model.head.blocks)
    with pytest.raises(InputError, match="does not cluster"):
        voices_by_distance(replace(diarizer, postprocess=PostprocessConfig()), meeting, sample_rate=16_000)


def test_a_recording_that_one_side_lacks_is_refused(probabilities, references):
    known = {uri: found for uri, found in references.items() if uri != "call_1"}
    with pytest.raises(InputError, match="call_1"):
        tune(probabilities, known, PostprocessConfig())
    with pytest.raises(InputError, match="the UEM has no regions of 'call_1'"):
        tune(probabilities, references, PostprocessConfig(), uem=dict.fromkeys(known, ((0.0, 3.8),)))
    with pytest.raises(InputError, match="the UEM has no regions of"):
        tune(probabilities, references, PostprocessConfig(), uem={})


@pytest.mark.parametrize("protocol", ["full", "fair", "forgiving"])
def test_it_searches_by_the_rate_that_it_reports(probabilities, references, protocol):
    in_pieces = {
        uri: tuple(
            Turn(start, min(start + 0.5, turn.end), turn.speaker)
            for turn in found
            for start in np.arange(turn.start, turn.end, 0.5).tolist()
        )
        for uri, found in references.items()
    }
    chosen = protocol_named(protocol)
    whole, cut = (tune(probabilities, each, PostprocessConfig(), protocol=chosen) for each in (references, in_pieces))
    assert cut.after.der == whole.after.der
    assert cut.postprocess == whole.postprocess


@given(some_probabilities(), configs, st.integers(0, 3), st.sampled_from(["full", "fair", "forgiving"]))
def test_errors_are_those_of_the_turns_tick_by_tick(probs, settings, seed, protocol):
    found = Probabilities(probs, STEP_S, max(0.0, len(probs) * STEP_S - 0.03))
    truth = truth_of(recording(seed), PostprocessConfig(onset=0.2, offset=0.2))
    given_truth = truth, [(0.0, 0.9), (1.0, 2.5)], protocol_named(protocol), found.duration, 0
    active, kept = in_ticks(*given_truth)
    heard = found.turns(settings)
    said = np.zeros((len(kept), probs.shape[1]), dtype=bool)
    for turn in heard:
        said[round(100 * turn.start) : round(100 * turn.end), heard.speakers.index(turn.speaker)] = True
    errors = frame_der(said[kept], active[kept]).errors
    assert TickTruth.of(*given_truth).errors(next(_spoken(found, [settings, PostprocessConfig()]))) == errors


def test_each_round_of_the_search_is_told_and_can_be_stopped(probabilities, references):
    told = []
    tune(probabilities, references, PostprocessConfig(), progress=lambda *args: told.append(args))
    rounds = [stage for stage, done, _ in told if done == 0]
    assert rounds == ["search, round 1", "search, round 2"]  # the second changed nothing
    assert len(told) == 2 * 9
    assert all(done < total for _, done, total in told)
    with pytest.raises(Cancelled, match="search, round 1"):
        tune(probabilities, references, PostprocessConfig(), progress=lambda *_: False)


def test_protocol_and_start_may_be_names(probabilities, references):
    named = tune(probabilities, references, "v2-dihard3", protocol="fair")
    start = POSTPROCESS_PRESETS["v2-dihard3"]
    assert named == tune(probabilities, references, start, protocol=protocol_named("fair"))


def test_a_recording_without_its_id_is_refused(probabilities, references):
    with pytest.raises(InputError, match=r"probabilities must be a mapping by the ids of recordings, .*, got Probab"):
        tune(probabilities["call_1"], references, PostprocessConfig())
    with pytest.raises(InputError, match=r"references must be a mapping by the ids of recordings, .*, got tuple"):
        tune(probabilities, references["call_1"], PostprocessConfig())


def test_nothing_to_tune_on_is_refused():
    with pytest.raises(InputError, match="at least one recording"):
        tune({}, {}, PostprocessConfig())

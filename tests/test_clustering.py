"""Clustering by voice: the amount of speech never changes, only its speakers; distinct voices are found."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

from sortformer.clustering import _cut, _stretches, by_turns, by_voice, unit_rows
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.errors import ConfigError
from tests.oracles.turn_borders import least_astray

CONFIG = ClusteringConfig(0.4)
DIM = 16


def conversation(seed: int, voices: int, turns: int = 24, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Return the speaker of each frame (T,), and embeddings (T, DIM): one direction per voice, and noise."""
    rng = np.random.default_rng(seed)
    order = [turn % voices for turn in range(voices)] + rng.integers(voices, size=turns - voices).tolist()
    who = np.concatenate([np.full(rng.integers(24, 40), voice) for voice in order])
    directions = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0][:voices]
    return who, directions[who] + noise * rng.normal(size=(len(who), DIM))


def slots_at_random(seed: int, frames: int, slots: int = 3) -> np.ndarray:
    """Return probabilities (T, S) with the right speech and random slots."""
    rng = np.random.default_rng(seed)
    probs = np.zeros((frames, slots), dtype=np.float32)
    probs[np.arange(frames), rng.integers(slots, size=frames)] = 0.7
    return probs


@given(seed=st.integers(0, 1000), voices=st.integers(1, 5))
@example(seed=112, voices=3)  # of a voice, the stretches across borders are a cluster of their own at first
@settings(max_examples=25)
def test_voices_that_are_apart_are_found_whatever_the_slots_say(seed, voices):
    who, emb = conversation(seed, voices, turns=12)
    found = by_voice(slots_at_random(seed, len(who)), emb, CONFIG)
    assert found.shape[1] == voices
    arrivals = [int(np.flatnonzero(who == voice)[0]) for voice in range(voices)]
    for column, voice in enumerate(np.argsort(arrivals)):  # in order of arrival
        assert np.mean((found[:, column] > 0.5) == (who == voice)) > 0.9  # all but the borders of turns


@given(seed=st.integers(0, 1000), frames=st.integers(0, 200), slots=st.integers(1, 4), threshold=st.floats(0.01, 1.9))
@settings(max_examples=50)
def test_how_many_speak_does_not_change(seed, frames, slots, threshold):
    rng = np.random.default_rng(seed)
    probs = (rng.random((frames, slots)) ** 3).astype(np.float32)
    found = by_voice(probs, rng.normal(size=(frames, DIM)), ClusteringConfig(threshold))
    assert found.dtype == np.float32
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found.sum(1), np.minimum(probs.sum(1), found.shape[1]), atol=1e-4)


@given(seed=st.integers(0, 1000), scale=st.floats(0.1, 10.0))
@settings(max_examples=25)
def test_neither_the_order_of_slots_nor_the_axes_of_embeddings_matter(seed, scale):
    who, emb = conversation(seed, 3, noise=0.2)
    rng, probs = np.random.default_rng(seed), slots_at_random(seed, len(who))
    turned = scale * emb @ np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    expected = by_voice(probs, emb, CONFIG)
    np.testing.assert_allclose(by_voice(probs[:, rng.permutation(3)], turned, CONFIG), expected, atol=1e-3)


def test_slots_that_are_sure_keep_voices_apart_that_are_alike():
    who, emb = conversation(6, 2)
    alike = emb + 0.45 * (emb[who == 0].mean(0) + emb[who == 1].mean(0))  # 0.35 apart
    probs = np.where(who[:, None] == np.arange(3), 0.95, 0.01).astype(np.float32)
    assert by_voice(0.75 * probs, alike, CONFIG).shape[1] == 1
    found = by_voice(probs, alike, CONFIG)
    assert found.shape[1] == 2
    assert np.mean((found[:, 0] > 0.5) == (who == who[0])) > 0.9
    assert by_voice(probs, alike, CONFIG, most=1).shape[1] == 1
    same = emb + 2 * (emb[who == 0].mean(0) + emb[who == 1].mean(0))
    assert by_voice(probs, same, CONFIG).shape[1] == 1


@pytest.mark.parametrize(
    ("order", "voices"), [("ababab", 2), ("aaabbb", 1), ("aabbaa", 1), ("aaabab", 2), ("abbbbb", 1), ("abcabc", 2)]
)
def test_voices_that_take_turns_are_two_from_a_smaller_distance_on(order, voices):
    rng = np.random.default_rng(3)
    who = np.repeat(["abc".index(turn) for turn in order], 40)
    directions = np.eye(DIM)[:3]
    directions[:2] += 1.3 * np.eye(DIM)[3]  # a and b are 0.37 apart, c is far from both
    emb = directions[who] + 0.02 * rng.normal(size=(len(who), DIM))
    probs = slots_at_random(3, len(who))
    voices += "c" in order
    assert by_voice(probs, emb, CONFIG).shape[1] == voices
    assert by_voice(probs, emb, ClusteringConfig(0.35)).shape[1] == 2 + ("c" in order)
    assert by_voice(probs, emb, ClusteringConfig(0.48)).shape[1] == 1 + ("c" in order)
    assert by_voice(probs, emb, ClusteringConfig(0.45)).shape[1] == voices
    assert by_voice(probs, emb, ClusteringConfig(0.45), alternating=0.9).shape[1] == 1 + ("c" in order)


@pytest.mark.parametrize(("turns", "voices"), [(2, 1), (5, 1), (7, 2)])
def test_who_says_little_takes_no_turns(turns, voices):
    who = np.zeros(1600, dtype=int)
    for turn in range(turns):
        who[200 * turn + 100 : 200 * turn + 140] = 1
    directions = np.eye(DIM)[:2] + 1.3 * np.eye(DIM)[3]  # 0.37 apart
    emb = directions[who] + 0.02 * np.random.default_rng(5).normal(size=(len(who), DIM))
    assert by_voice(slots_at_random(5, len(who)), emb, CONFIG).shape[1] == voices


@given(seed=st.integers(0, 1000), moments=st.integers(2, 14))
@settings(max_examples=60)
def test_whether_voices_take_turns_is_what_every_way_to_part_them_says(seed, moments):
    rng = np.random.default_rng(seed)
    who = np.sort(rng.integers(2, size=moments)) if seed % 2 else rng.integers(2, size=moments)
    who[:2] = 0, 1
    size = rng.uniform(0.1, 2.0, moments)
    one, other = size * (who == 0), size * (who == 1)
    share = least_astray(one, other) / min(one.sum(), other.sum())
    assert by_turns(one, other) == by_turns(other, one) == (share > 0.1)


def test_slots_that_are_sure_only_together_keep_nobody_apart():
    who, emb = conversation(6, 2)
    alike = emb + 0.45 * (emb[who == 0].mean(0) + emb[who == 1].mean(0))
    probs = slots_at_random(6, len(who))
    probs[100:160, :2] = 0.95
    assert by_voice(probs, alike, CONFIG).shape[1] == 1


def test_who_has_a_slot_for_sure_may_say_little():
    who = np.repeat([0, 1, 0], [700, 30, 700])
    emb = np.eye(DIM)[who] + 0.05 * np.random.default_rng(0).normal(size=(len(who), DIM))
    probs = np.where(who[:, None] == np.arange(2), 0.95, 0.01).astype(np.float32)
    assert by_voice(0.75 * probs, emb, CONFIG).shape[1] == 1
    found = by_voice(probs, emb, CONFIG)
    assert found.shape[1] == 2
    assert np.mean((found[:, 1] > 0.5) == (who == 1)) > 0.99


@pytest.mark.parametrize("wanted", [1, 2, 3, 4])
def test_the_number_of_voices_may_be_given(wanted):
    who, emb = conversation(1, 3, noise=0.3)
    found = by_voice(slots_at_random(1, len(who)), emb, CONFIG, wanted, wanted)
    assert found.shape[1] == wanted
    assert (found.max(axis=0) > 0.5).all()
    assert by_voice(slots_at_random(1, len(who)), emb, CONFIG, most=wanted).shape[1] == min(wanted, 3)


def test_who_is_asked_for_may_say_little():
    who = np.repeat([0, 1, 2], [60, 60, 7])
    probs = slots_at_random(0, len(who))
    assert by_voice(probs, np.eye(DIM)[who], CONFIG).shape[1] == 2
    assert by_voice(probs, np.eye(DIM)[who], CONFIG, 3).shape[1] == 3


def test_of_many_who_are_asked_for_some_may_say_less_than_of_a_few():
    rng = np.random.default_rng(5)
    stretches = [40] * 9 + [8]  # the last says a fiftieth
    who = np.concatenate([np.full(20, voice) for voice in rng.permutation(np.repeat(np.arange(10), stretches))])
    directions = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0][:10]
    emb = directions[who] + 0.1 * rng.normal(size=(len(who), DIM))
    found = by_voice(slots_at_random(5, len(who)), emb, ClusteringConfig(0.4, max_speakers=10), fewest=10)
    said = [(found[who == voice] > 0.5).mean(axis=0) for voice in range(10)]
    assert len({int(each.argmax()) for each in said if each.max() > 0.9}) == 10


def test_of_known_voices_that_both_say_too_little_the_one_that_says_more_is_found():
    who = np.repeat([0, 1], [7, 7])
    voices = np.eye(DIM)[:2] + 2 * np.eye(DIM)[2]  # one cluster
    probs = slots_at_random(0, len(who))
    probs[6] = 0.0
    assert by_voice(probs, voices[who], CONFIG, known=unit_rows(voices)).shape[1] == 1


def test_who_is_asked_for_is_no_odd_stretch():
    who = np.repeat([0, 1, 2, 0, 1], [200, 180, 7, 100, 90])
    voices = np.eye(DIM)[:3]
    voices[:2] += 1.3 * np.eye(DIM)[3]  # 0.37 apart, and far from a cough
    probs = slots_at_random(0, len(who))
    probs[[*range(370, 380), *range(387, 397)]] = 0.0
    found = by_voice(probs, voices[who], ClusteringConfig(0.45), 2, 2)
    for column, voice in enumerate((0, 1)):
        assert (found[who == voice, column] > 0.5).mean() > 0.9


@given(seed=st.integers(0, 1000), stretches=st.integers(2, 40), wanted=st.integers(1, 12), least=st.integers(1, 40))
@settings(max_examples=50)
def test_a_tree_is_cut_where_first_so_many_groups_speak_enough(seed, stretches, wanted, least):
    rng = np.random.default_rng(seed)
    tree, size = linkage(rng.normal(size=(stretches, 3)), "average"), rng.integers(1, 6, stretches).astype(float)
    labels, enough = _cut(tree, size, wanted, least)
    cuts = [fcluster(tree, groups, "maxclust") - 1 for groups in range(1, stretches + 1)]

    def heard(cut: np.ndarray, least: float) -> int:
        return int((np.bincount(cut, weights=size) >= least).sum())

    wanted = min(wanted, stretches)
    first = next(cut for cut in cuts if heard(cut, enough) >= wanted)
    np.testing.assert_array_equal(labels, first)
    assert enough == least or (max(heard(cut, 2 * enough) for cut in cuts) < wanted and enough < least)


@given(single=st.text("01", max_size=60), shortest=st.integers(1, 4), more=st.integers(0, 6))
def test_stretches_are_unbroken_and_neither_too_short_nor_too_long(single, shortest, more):
    found = _stretches(np.array([frame == "1" for frame in single], dtype=bool), shortest, shortest + more)
    pieces = (piece.span() for piece in re.finditer(f"1{{1,{shortest + more}}}", single))
    expected = [list(range(start, end)) for start, end in pieces if end - start >= shortest]
    assert [piece.tolist() for piece in found] == expected


def test_no_more_voices_than_the_config_allows():
    who, emb = conversation(2, 5)
    probs = slots_at_random(2, len(who))
    assert by_voice(probs, emb, ClusteringConfig(0.4, max_speakers=3)).shape[1] == 3


def test_those_who_speak_most_are_the_voices():
    who = np.repeat([0, 1, 2], [80, 60, 20])
    voices = np.eye(DIM)[:3]
    voices[1] = 0.55 * voices[0] + np.sqrt(1 - 0.55**2) * voices[1]  # nearer to the first than the last voice is to any
    found = by_voice(slots_at_random(0, len(who)), voices[who], ClusteringConfig(0.4, max_speakers=2))
    assert [int(found[who == voice].sum(axis=0).argmax()) for voice in (0, 1)] == [0, 1]


def test_a_wish_goes_before_the_config():
    who, emb = conversation(2, 5)
    config = ClusteringConfig(0.4, max_speakers=3)
    assert by_voice(slots_at_random(2, len(who)), emb, config, most=5).shape[1] == 5


def test_a_cough_is_no_speaker():
    who, emb = conversation(3, 2)
    emb[:5] = 100 * np.eye(DIM)[0] - emb[:5]
    assert by_voice(slots_at_random(3, len(who)), emb, CONFIG).shape[1] == 2


def test_a_word_in_a_long_talk_is_no_speaker_either():
    who = np.repeat([0, 1, 2], [400, 380, 20])
    assert by_voice(slots_at_random(0, len(who)), np.eye(DIM)[who], CONFIG).shape[1] == 2


def test_silence_is_no_voice():
    who, emb = conversation(7, 2, noise=0.3)
    pause = np.tile(np.linalg.svd(emb)[2][-1], (60, 1))  # unlike either voice, which differ in themselves
    probs = np.concatenate([slots_at_random(7, len(who)), np.zeros((60, 3), np.float32)])
    assert by_voice(probs, np.concatenate([emb, pause]), CONFIG).shape[1] == 2


def test_in_overlap_the_nearest_two_share_the_speech():
    who, emb = conversation(4, 3, noise=0.0)
    probs = slots_at_random(4, len(who))
    names = [int(np.argmax(by_voice(probs, emb, CONFIG)[who == voice].sum(0))) for voice in range(3)]
    middle = len(who) // 2
    emb[middle - 5 : middle + 5] = emb[who == 0][0] + emb[who == 1][0]
    probs[middle - 5 : middle + 5] = (0.9, 0.9, 0.1)
    found = by_voice(probs, emb, CONFIG)[middle]
    assert found[names[0]] > 0.8
    assert found[names[1]] > 0.8


def test_overlap_says_nothing_of_how_a_voice_sounds():
    who = np.repeat([0, 1, 2], [40, 40, 200])  # the embedding of both together is like neither
    probs = np.where(who[:, None] == 2, [0.9, 0.9], [0.7, 0.0])
    found = by_voice(probs, np.eye(DIM)[who], CONFIG)
    assert found[10] == pytest.approx([0.7, 0], abs=0.01)
    assert found[60] == pytest.approx([0, 0.7], abs=0.01)


def test_what_the_nearest_voice_cannot_say_goes_even_to_its_opposite():
    who = np.repeat([0, 1], [80, 40])
    probs = slots_at_random(0, len(who))
    probs[60:80] = (0.9, 0.9, 0.0)  # with the embedding of the first voice alone; the second is its opposite
    found = by_voice(probs, np.eye(DIM)[0] * (1 - 2 * who[:, None]), CONFIG)
    np.testing.assert_allclose(found.sum(axis=1), probs.sum(axis=1), atol=1e-4)


def test_a_moment_that_sounds_like_another_voice_is_none():
    who = np.repeat([0, 1, 0, 1], [60, 2, 60, 60])
    emb = np.eye(DIM)[who] + 0.5 * np.eye(DIM)[1 - who]
    found = by_voice(np.full((len(who), 1), 0.9), emb, ClusteringConfig(0.1))
    assert ((found[:, 0] > 0.5) == (np.arange(len(who)) < 122)).all()


def test_who_is_never_likelier_than_not_comes_last():
    who = np.repeat([0, 1], 60)
    probs = np.where(who, 0.9, 0.4)[:, None]
    for order in (slice(None), slice(None, None, -1)):
        found = by_voice(probs[order], np.eye(DIM)[who[order]], CONFIG)
        assert found.max(axis=0) == pytest.approx([0.9, 0.4], abs=0.01)


@pytest.mark.parametrize(("threshold", "voices"), [(0.42, 2), (0.5, 1)])
def test_a_stretch_counts_by_how_much_it_says(threshold, voices):
    def apart(distance, to):  # at this distance from the first axis
        return (1 - distance) * np.eye(DIM)[0] + np.sqrt(1 - (1 - distance) ** 2) * np.eye(DIM)[to]

    # A long stretch 0.35 away and three short ones 0.6 away: 0.54 apart by stretches, 0.46 by frames.
    said = [(20, np.eye(DIM)[0]), (20, apart(0.35, 1)), *[(6, apart(0.6, 1))] * 3]
    pause = np.zeros((4, DIM))
    emb = np.concatenate([part for frames, voice in said for part in (np.tile(voice, (frames, 1)), pause)])
    probs = 0.7 * emb.any(axis=1, keepdims=True).astype(np.float32)
    assert by_voice(probs, emb, ClusteringConfig(threshold)).shape[1] == voices


def test_of_hours_some_stretches_are_enough(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.clustering._MOST_SAMPLES", 60)
    who, emb = conversation(5, 3, turns=60)
    found = by_voice(slots_at_random(5, len(who)), emb, CONFIG)
    assert found.shape[1] == 3
    for voice in range(3):
        assert found[who == voice].mean(axis=0).max() > 0.8 * 0.7


def test_who_comes_late_in_hours_is_found_as_well(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.clustering._MOST_SAMPLES", 60)
    who = np.repeat([0, 1, 2], [400, 400, 200])
    assert by_voice(slots_at_random(0, len(who)), np.eye(DIM)[who], CONFIG).shape[1] == 3


def test_a_row_of_nothing_has_no_direction():
    np.testing.assert_array_equal(unit_rows(np.array([[0.0, 0.0], [3.0, 4.0]])), [[0, 0], [0.6, 0.8]])


@pytest.mark.parametrize("frames", [0, 1, 20])
def test_where_nobody_speaks_alone_the_slots_stay(frames):
    probs = np.full((frames, 2), 0.9, dtype=np.float32)
    np.testing.assert_array_equal(by_voice(probs, np.ones((frames, DIM)), CONFIG), probs)


def test_of_more_slots_than_there_may_be_voices_those_that_speak_most_have_all_speech():
    probs = np.array([[0.1, 0.0, 0.6, 0.9], [0.0, 0.2, 0.5, 0.1]], dtype=np.float32)
    found = by_voice(probs, np.ones((2, DIM)), CONFIG, most=2)
    np.testing.assert_allclose(found, [[0.64, 0.96], [2 / 3, 0.4 / 3]], atol=1e-5)
    assert found.dtype == np.float32


def test_embeddings_are_scaled_but_not_copied_again():
    emb = np.random.default_rng(0).standard_normal((2000, 4096), dtype=np.float32)
    tracemalloc.start()
    by_voice(slots_at_random(0, len(emb), slots=1), emb, CONFIG)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.9 * emb.nbytes


@pytest.mark.parametrize("threshold", [0.0, 2.0, -0.1, float("nan")])
def test_a_threshold_is_a_cosine_distance(threshold):
    with pytest.raises(ConfigError, match="threshold"):
        ClusteringConfig(threshold)


@pytest.mark.parametrize("speakers", [0, 41])
def test_one_to_forty_speakers_are_told_apart(speakers):
    with pytest.raises(ConfigError, match=f"max_speakers of clustering must be 1 to 40, got {speakers}"):
        ClusteringConfig(0.4, speakers)


def test_it_is_part_of_the_post_processing():
    config = PostprocessConfig(onset=0.3, clustering=ClusteringConfig(0.35, 6))
    assert from_dict(PostprocessConfig, to_dict(config)) == config

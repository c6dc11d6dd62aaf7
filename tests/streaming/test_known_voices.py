"""Streams by voice with enrolled people: they stay apart, each in a column of their own."""

import numpy as np

from sortformer.config.clustering import ClusteringConfig
from sortformer.streaming.by_voice import by_known_voice
from tests.test_clustering import DIM, slots_at_random

CLUSTERING = ClusteringConfig(0.4)


def alike(turns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return who speaks (T,), in turns of 16 frames, and two voices (2, DIM) that are 0.2 apart."""
    return np.repeat(np.arange(turns) % 2, 16), np.array([np.eye(DIM)[0], 0.8 * np.eye(DIM)[0] + 0.6 * np.eye(DIM)[1]])


def test_known_voices_are_two_however_alike_they_are():
    who, voices = alike(turns=8)
    probs, nothing, known = slots_at_random(0, len(who), slots=4), np.zeros((0, 4), np.float32), np.zeros((4, DIM))
    known[0] = voices[1]
    one = by_known_voice(probs, voices[who], nothing, CLUSTERING, 4, known)
    assert one.any(axis=0).tolist() == [True, False, False, False]
    known[2] = voices[0]
    two = by_known_voice(probs, voices[who], nothing, CLUSTERING, 4, known)
    assert two.any(axis=0).tolist() == [True, False, True, False]
    assert np.mean(two.argmax(axis=1) == np.array([2, 0])[who]) > 0.9


def test_known_voices_are_two_within_the_speakers_that_there_may_be():
    who, voices = alike(turns=6)
    who, voices = np.append(who, np.full(8, 2)), np.append(voices, np.eye(DIM)[None, 2], axis=0)
    probs, nothing = slots_at_random(0, len(who), slots=4), np.zeros((0, 4), np.float32)
    found = by_known_voice(probs, voices[who], nothing, CLUSTERING, 2, np.pad(voices[:2], ((0, 2), (0, 0))))
    assert found.any(axis=0).tolist() == [True, True, False, False]  # the third, who says least, is merged into these
    np.testing.assert_allclose(found.sum(axis=1), probs.sum(axis=1), atol=1e-5)


def test_a_column_is_that_of_the_known_voice_and_of_nobody_else():
    who = np.repeat([0, 1], [20, 40])
    probs, known = slots_at_random(0, len(who), slots=4), np.zeros((4, DIM))
    before = np.zeros((40, 4), np.float32)
    before[:, 1] = 0.9  # also what the known voice has said before it was known
    known[0], known[3] = np.eye(DIM)[2], np.eye(DIM)[1]
    found = by_known_voice(probs, np.eye(DIM)[who], before, CLUSTERING, 4, known)
    assert [int(found[who == voice].sum(axis=0).argmax()) for voice in (0, 1)] == [1, 3]
    found = by_known_voice(probs, np.eye(DIM)[who], before[:0], CLUSTERING, 4, known)
    assert [int(found[who == voice].sum(axis=0).argmax()) for voice in (0, 1)] == [1, 3]  # not 0

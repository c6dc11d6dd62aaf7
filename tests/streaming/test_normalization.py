"""Streams take features with constant normalisation, with the loudness normalised; others need the whole recording."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from sortformer.audio.offset import centred
from sortformer.config.model import FeatureConfig
from sortformer.config.stream import STREAM_PRESETS
from sortformer.errors import ConfigError
from sortformer.features import LogMel
from sortformer.model import Sortformer
from sortformer.streaming import Session
from sortformer.streaming.front import hear, start_front
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.streaming.tiny import noise, normalized, tiny_model


@MAXIMUM_MAY_BE_REACHED
def test_constants_are_known_in_advance():
    session = Session(normalized("fixed"), STREAM_PRESETS["1s"])
    session.push(noise(48_000))
    session.finish()
    assert session.num_frames == 38


@pytest.mark.parametrize(("kind", "same"), [("fixed", True), ("none", False)])
def test_a_loud_stream_is_soon_heard_as_others_are(kind: Literal["fixed", "none"], same: bool):
    log_mel, wave = LogMel(FeatureConfig(normalize=kind)), noise(320_000)
    wave *= np.float32(0.1 / np.abs(wave).max())
    found = []
    for factor in (1, 8):
        front = start_front(log_mel)
        for part in np.split(factor * wave, 20):
            front = hear(log_mel, front, part)
        found.append(front.mel[:, 1500:].numpy())
    assert np.allclose(*found, atol=0.1) is same  # without normalisation they differ by 1.2


def test_the_offset_of_a_recorder_is_followed_from_block_to_block():
    log_mel, wave = LogMel(FeatureConfig(normalize="fixed")), noise(32_000) + np.float32(0.3)
    front = start_front(log_mel)
    for part in np.split(wave, 20):
        front = hear(log_mel, front, part)
    assert front.offset == pytest.approx(centred(wave)[1], rel=1e-3)


@pytest.mark.parametrize("tilt_range", [None, (-9.0, -5.0)])
def test_however_a_stream_is_cut_it_is_as_loud(tilt_range: tuple[float, float] | None):
    model, wave, found = normalized("fixed", tilt_range), 8 * noise(96_000), []
    for cuts in ([], [1, 799, 20_000, 20_000, 71_111], range(1_000, 96_000, 1_000)):
        session = Session(model, STREAM_PRESETS["1s"])
        parts = [session.push(part).probs for part in np.split(wave, cuts)]
        found.append(np.concatenate([*parts, session.flush().probs]))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_what_is_told_a_stream_of_its_level_and_tilt_survives_a_snapshot():
    model, wave = normalized("fixed", (-9.0, -5.0)), noise(96_000)
    session = Session(model, STREAM_PRESETS["1s"])
    session.push(wave[:40_001])
    other = Session.restore(model, session.snapshot())
    for each in (session, other):
        each.push(wave[40_001:])
    np.testing.assert_array_equal(other.flush().probs, session.flush().probs)


def test_the_clip_of_a_voice_is_heard_as_loud_as_others_are():
    model, found = normalized("fixed"), []
    for factor in (0.1, 1):
        session = Session(model, STREAM_PRESETS["1s"])
        session.enroll("chair", factor * noise(30_000, seed=7))
        found.append(session._position.memory.fifo.emb.numpy())
    np.testing.assert_allclose(*found, atol=0.1)


def test_a_stream_has_no_peak_to_go_by():
    model, wave = tiny_model(), noise(48_000)
    config = replace(model.config, features=replace(model.config.features, gain="peak"))
    peak = Sortformer(config).eval()
    peak.load_state_dict(model.state_dict())
    expected, found = (Session(each, STREAM_PRESETS["1s"]).push(wave).probs for each in (model, peak))
    np.testing.assert_array_equal(found, expected)


def test_the_statistics_of_a_recording_are_not():
    with pytest.raises(ConfigError, match="normalises its features over the whole recording"):
        Session(normalized("per_feature"), STREAM_PRESETS["1s"])

"""A stream takes features that are scaled by constants, and refuses those that need the whole recording."""

from dataclasses import replace

import pytest

from sortformer.config.stream import STREAM_PRESETS
from sortformer.errors import ConfigError
from sortformer.model import Sortformer
from sortformer.streaming import Session
from tests.streaming.tiny import noise, tiny_model


def normalized(kind: str) -> Sortformer:
    plain = tiny_model()
    model = Sortformer(replace(plain.config, features=replace(plain.config.features, normalize=kind))).eval()
    model.load_state_dict(plain.state_dict())
    return model


def test_constants_are_known_in_advance():
    session = Session(normalized("fixed"), STREAM_PRESETS["1s"])
    session.push(noise(48_000))
    session.finish()
    assert session.num_frames == 38


def test_the_statistics_of_a_recording_are_not():
    with pytest.raises(ConfigError, match="over the whole recording"):
        Session(normalized("per_feature"), STREAM_PRESETS["1s"])

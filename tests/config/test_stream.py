"""Streaming configs are always valid, and NVIDIA's are the published ones."""

import pytest

from sortformer.config.stream import STREAM_PRESETS, SpeakerCacheConfig, StreamConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.errors import ConfigError


@pytest.mark.parametrize("name", STREAM_PRESETS)
def test_presets_are_called_by_their_latency_and_survive_a_dictionary(name):
    config = STREAM_PRESETS[name]
    seconds = float(name.rpartition("-")[2].removesuffix("s"))
    assert config.latency_s == pytest.approx(seconds, abs=0.05)
    assert from_dict(StreamConfig, to_dict(config)) == config


def test_nvidias_presets_are_those_of_the_model_cards():
    # chunk, right context, FIFO, update period, cache, silence frames a speaker, left context
    cards = {
        "nvidia-30.4s": (340, 40, 40, 300, 188, 3, 1),
        "nvidia-10s": (124, 1, 124, 124, 188, 3, 1),
        "nvidia-1.04s": (6, 7, 188, 144, 188, 3, 1),
        "nvidia-0.32s": (3, 1, 188, 144, 188, 3, 1),
        "nemotron3-30.4s": (340, 40, 40, 300, 264, 1, 0),
        "nemotron3-1.04s": (9, 4, 264, 222, 264, 1, 0),
        "nemotron3-0.64s": (6, 2, 264, 222, 264, 1, 0),
        "nemotron3-0.32s": (3, 1, 264, 222, 264, 1, 0),
    }
    for name, card in cards.items():
        config = STREAM_PRESETS[name]
        assert card == (
            config.chunk_frames,
            config.right_context_frames,
            config.fifo_frames,
            config.update_period_frames,
            config.speaker_cache.frames,
            config.speaker_cache.silence_frames,
            config.left_context_frames,
        )
        assert config.margin_frames == 0, "NVIDIA's first left context frame lacks its own context"


@pytest.mark.parametrize(
    "values",
    [
        {"chunk_frames": 0},
        {"chunk_frames": 5, "right_context_frames": -1},
        {"chunk_frames": 5, "update_period_frames": 0},
        {"chunk_frames": 5, "max_speakers": 0},
        {"chunk_frames": 5, "speaker_cache": {"frames": -1}},
        {"chunk_frames": 5, "speaker_cache": {"probability_floor": 0.5}},
        {"chunk_frames": 5, "speaker_cache": {"probability_floor": 0.0}},
        {"chunk_frames": 5, "speaker_cache": {"silence_frames": -1}},
        {"chunk_frames": 5, "speaker_cache": {"newcomer_bonus": -0.1}},
    ],
)
def test_impossible_values_are_refused(values):
    with pytest.raises(ConfigError):
        from_dict(StreamConfig, values)


@pytest.mark.parametrize(("frames", "slots", "fits"), [(0, 8, True), (16, 4, True), (15, 4, False)])
def test_a_cache_holds_a_frame_and_the_silence_of_every_slot(frames, slots, fits):
    config = SpeakerCacheConfig(frames)
    if fits:
        config.check_slots(slots)
    else:
        with pytest.raises(ConfigError, match="too small for 4 slots: it needs 16"):
            config.check_slots(slots)

"""Presets: the published numbers, under the names of each model."""

from dataclasses import replace

import pytest

from sortformer.config.model import EncoderConfig, FeatureConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import (
    POSTPROCESS_PRESETS,
    as_postprocess,
    model_preset,
    model_presets,
    nearest_preset,
    streams_files,
)
from sortformer.config.stream import STREAM_PRESETS, StreamConfig
from sortformer.errors import ConfigError

V1 = ModelConfig(FeatureConfig(normalize="per_feature", gain="peak"), labelling="nemo")
V2 = ModelConfig(FeatureConfig(num_mels=128), labelling="nemo")
NEMOTRON3 = replace(V2, encoder=EncoderConfig(learned_silence=True))


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (V1, []),
        (V2, ["30.4s", "10s", "1.04s", "0.32s"]),
        (NEMOTRON3, ["30.4s", "1.04s", "0.64s", "0.32s"]),
        (ModelConfig(), ["30s", "10s", "1s", "0.3s"]),
        (ModelConfig(FeatureConfig(normalize="fixed")), ["30s", "10s", "1s", "0.3s"]),
    ],
)
def test_a_model_knows_its_own_presets_the_slowest_first(model, names):
    presets = model_presets(model)
    assert list(presets) == names
    for name, config in presets.items():
        assert config.latency_s == pytest.approx(float(name.removesuffix("s")), abs=0.05)
        config.speaker_cache.check_slots(8 if model is NEMOTRON3 else 4)


def test_the_published_numbers():
    def numbers(config: StreamConfig) -> tuple[int, ...]:
        return (
            config.chunk_frames,
            config.right_context_frames,
            config.fifo_frames,
            config.update_period_frames,
            config.speaker_cache.frames,
        )

    assert numbers(model_presets(V2)["10s"]) == (124, 1, 124, 124, 188)
    assert numbers(model_presets(NEMOTRON3)["1.04s"]) == (9, 4, 264, 222, 264)


def test_every_preset_belongs_to_a_model():
    known = [config for model in (V2, NEMOTRON3, ModelConfig()) for config in model_presets(model).values()]
    assert sorted(map(repr, known)) == sorted(map(repr, STREAM_PRESETS.values()))


def test_a_preset_that_the_model_does_not_have_is_refused_with_those_that_it_has():
    assert model_preset(V2, "10s") == STREAM_PRESETS["nvidia-10s"]
    with pytest.raises(ConfigError, match=r"no streaming preset '30s'; known: 30\.4s, 10s, 1\.04s, 0\.32s"):
        model_preset(V2, "30s")
    with pytest.raises(ConfigError, match="cannot stream"):
        model_preset(V1, "30s")


def test_files_go_through_nvidias_streams_and_whole_into_other_models():
    assert [streams_files(model) for model in (V1, V2, NEMOTRON3, ModelConfig())] == [False, True, True, False]
    assert nearest_preset(V2, 30.0) == nearest_preset(NEMOTRON3, 30.0) == "30.4s"


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("none", (0.5, 0.5, 0.0, 0.0, 0.0, 0.0)),
        ("v1-callhome", (0.53, 0.49, 0.23, 0.01, 0.42, 0.34)),
        ("v1-dihard3", (0.64, 0.74, 0.06, 0.0, 0.1, 0.15)),
        ("v2-callhome", (0.641, 0.561, 0.229, 0.079, 0.511, 0.296)),
        ("v2-dihard3", (0.56, 1.0, 0.063, 0.002, 0.007, 0.151)),
    ],
)
def test_post_processing_is_as_published(name, numbers):
    fields = ("onset", "offset", "pad_on_s", "pad_off_s", "min_on_s", "min_off_s")
    assert as_postprocess(name) == PostprocessConfig(**dict(zip(fields, numbers, strict=True)))


def test_post_processing_by_name():
    with pytest.raises(ConfigError, match="no post-processing 'v3'; known: none, v1-callhome"):
        as_postprocess("v3")
    assert len(POSTPROCESS_PRESETS) == 5

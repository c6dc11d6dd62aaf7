"""Configs made in Python are as strict as those in files: a value of the wrong type is refused by name."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sortformer.config.attention import AttentionConfig
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.cores import FixedCore, RoutingCore, SinkhornCore
from sortformer.config.data import DataConfig, RecordingsConfig
from sortformer.config.depth import UniversalDepth
from sortformer.config.labels import LabelConfig
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.simulation import CastingConfig, ChannelConfig, SimulationConfig, TurnTakingConfig
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.config.train import (
    CountTeacherConfig,
    LossConfig,
    OptimizerConfig,
    StageConfig,
    TeacherConfig,
    TrainConfig,
)
from sortformer.errors import ConfigError

STAGE = StageConfig(10, 3.0, 2)
TRAIN = TrainConfig(DataConfig("bank"), (STAGE,), steps=10)


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        (EncoderConfig(), "depth", "reversible"),
        (EncoderConfig(), "depth", None),
        (EncoderConfig(), "depth", UniversalDepth),
        (EncoderConfig(), "attention", ("full",)),
        (EncoderConfig(), "attention", AttentionConfig()),
        (EncoderConfig(), "dropout", "0.1"),
        (HeadConfig(), "estimate_layers", (1, 2.5)),
        (HeadConfig(), "arrival_sharpness", True),
        (ModelConfig(), "head", {"num_slots": 4}),
        (AttentionConfig(), "core", "favor"),
        (AttentionConfig(), "memory", RoutingCore()),
        (PostprocessConfig(), "clustering", 0.4),
        (PostprocessConfig(), "onset", None),
        (PostprocessConfig(), "pad_on_s", "0.1"),
        (ClusteringConfig(0.4), "max_speakers", 2.5),
        (ClusteringConfig(0.4), "threshold", "0.4"),
        (EncoderConfig(), "conv_causal", "no"),
        (EncoderConfig(), "conv_causal", None),
        (DataConfig("bank"), "bank", 5),
        (DataConfig("bank"), "turns", (1,)),
        (LabelConfig(), "neighbours", 2.0),
        (LabelConfig(), "stranger", float("nan")),
        (StreamConfig(6), "speaker_cache", 188),
        (StreamConfig(6), "clustering", 0.4),
        (SpeakerCacheConfig(), "strong_share", "0.75"),
        (RecordingsConfig("m.jsonl"), "weight", "1"),
        (DataConfig("bank"), "recordings", ("m.jsonl",)),
        (DataConfig("bank"), "speeds", [0.9, 1.0]),
        (DataConfig("bank"), "rooms", 2.5),
        (CastingConfig(), "turn_tilt", "0.1"),
        (TurnTakingConfig(), "dominance", ("0.7", "8.0")),
        (ChannelConfig(), "babble_voices", (4.0, 8.0)),
        (SimulationConfig(), "channel", None),
        (STAGE, "batch_size", 2.0),
        (OptimizerConfig(), "learning_rate", "1e-3"),
        (OptimizerConfig(), "warmup_steps", 0.5),
        (LossConfig(), "span_weight", None),
        (TeacherConfig("table.npz"), "weight", "1"),
        (CountTeacherConfig("counts.npz"), "network", None),
        (TRAIN, "precision", "bfloat16"),
        (TRAIN, "stages", (10,)),
        (TRAIN, "model", "small"),
        (TRAIN, "seed", 0.5),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(config: Any, name: str, value: Any):
    with pytest.raises(ConfigError, match=rf"^{name} must be .*, got "):
        replace(config, **{name: value})


@pytest.mark.parametrize(
    ("config", "values"),
    [
        (FeatureConfig(), {"num_mels": 1}),
        (FeatureConfig(), {"num_mels": 257}),
        (FeatureConfig(8, normalize="fixed"), {"tilt_range": (-60.0, 60.0)}),
        (EncoderConfig(), {"ff_chunk_frames": 1, "window_frames": 1, "conv_kernel": 1, "dropout": 0.0}),
        (FixedCore(), {"block_frames": 8, "summary_frames": 8}),
        (SinkhornCore(), {"temperature": 0.001}),
        (STAGE, {"until_step": 1, "duration_s": 0.5, "batch_size": 1, "streamed_probability": 1.0}),
        (OptimizerConfig(), {"warmup_steps": 0, "final_ratio": 1.0, "betas": (0.0, 0.0)}),
        (OptimizerConfig(), {"weight_decay": 0.0, "final_ratio": 0.0, "ema_decay": 0.0}),
        (LossConfig(), {"sort_weight": 1.0, "deep_sort_weight": 1.0, "deep_weight": 0.0}),
        (TRAIN, {"seed": 2**31 - 1, "workers": 0}),
        (DataConfig("bank", recordings=(RecordingsConfig("m.jsonl"),)), {"simulated_weight": 0.0, "pool": 1}),
        (RecordingsConfig("m.jsonl"), {"channel_probability": 1.0}),
        (StreamConfig(6), {"chunk_frames": 1, "max_speakers": 1}),
        (SpeakerCacheConfig(), {"frames": 0, "silence_frames": 0}),
        (CastingConfig(), {"voice_gain_db": 200.0, "turn_tilt": 0.0}),
        (TurnTakingConfig(), {"turn_spread": 10.0, "overlap_probability": (0.0, 1.0)}),
        (ChannelConfig(), {"level_dbfs": (-200.0, 200.0), "clip_share": (1.0, 1.0), "babble_voices": (1, 1)}),
    ],
)
def test_the_ends_of_a_range_are_allowed(config: Any, values: dict[str, Any]):
    changed = replace(config, **values)
    assert {name: getattr(changed, name) for name in values} == values


@pytest.mark.parametrize("value", [0, 1, np.float32(0.5), np.float64(0.5), np.int64(1)])
def test_every_real_number_is_welcome_where_a_float_is_meant(value: Any):
    assert PostprocessConfig(onset=value).onset == value


def test_what_is_wanted_is_said():
    with pytest.raises(ConfigError, match="depth must be of type StackedDepth or ReversibleDepth or UniversalDepth"):
        HeadConfig(depth="reversible")  # pyright: ignore[reportArgumentType]

"""Which models stream with a state of their layers, and the reason why others do not."""

from dataclasses import replace

import pytest

from sortformer.config.attention import AttentionConfig
from sortformer.config.carrying import carries, check_carries, memory_chunk_frames
from sortformer.config.cores import FavorCore, FixedCore
from sortformer.config.memories import NearestMemory, TransformerXLMemory
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.presets import model_preset, model_presets, nearest_preset
from sortformer.errors import ConfigError

XL = AttentionConfig(position="rope", memory=TransformerXLMemory(frames=100, chunk_frames=125))
SUMS = AttentionConfig(FavorCore(causal=True), "rope")
MODEL = ModelConfig(encoder=EncoderConfig(conv_causal=True, attention=(XL,)), head=HeadConfig(attention=(XL,)))


def with_parts(encoder: dict | None = None, head: dict | None = None, features: dict | None = None) -> ModelConfig:
    return ModelConfig(
        replace(MODEL.features, **(features or {})),
        replace(MODEL.encoder, **(encoder or {})),
        replace(MODEL.head, **(head or {})),
    )


@pytest.mark.parametrize(
    ("model", "carried"),
    [
        (ModelConfig(), False),
        (MODEL, True),
        (with_parts({"attention": ()}), True),
        (with_parts({"attention": (SUMS,)}, {"attention": ()}), True),
        (with_parts({"attention": (AttentionConfig(FavorCore()),)}, {"attention": ()}), False),
        (with_parts({"attention": (AttentionConfig(FixedCore(causal=True), "rope"),)}, {"attention": ()}), True),
        (with_parts({"attention": (AttentionConfig(FixedCore(causal=True), "alibi"),)}, {"attention": ()}), False),
    ],
)
def test_a_layer_carries_something_by_a_memory_or_by_causal_sums(model, carried):
    assert carries(model) is carried


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (with_parts(head={"attention": (XL, XL, AttentionConfig(), XL)}), "layer 3 of the head has no state"),
        (with_parts({"attention": (AttentionConfig(FavorCore()),)}), "layer 1 of the encoder has no state"),
        (
            with_parts({"attention": (AttentionConfig(FixedCore(causal=True), "alibi"),)}),
            "layer 1 of the encoder has no state: .* and a position that does not score pairs",
        ),
        (with_parts({"conv_causal": False}), "needs 4 future frames"),
        (with_parts(head={"permutation": "soft"}), "'soft' needs the order of arrival in the whole recording"),
        (with_parts(head={"permutation": "softsort"}), "'softsort' needs the order"),
        (with_parts(head={"permutation": "sinkhorn"}), "'sinkhorn' needs the order"),
        (with_parts(head={"upsampling": 8, "estimate_layers": ()}), "shorter than 80 ms"),
        (
            with_parts({"attention": (replace(XL, position="learned"),)}),
            "table of positions, which is too short for a stream",
        ),
        (
            with_parts({"attention": (AttentionConfig(memory=NearestMemory(chunk_frames=50)),)}),
            r"its memories have different chunk_frames \(50, 125\)",
        ),
        (with_parts(features={"normalize": "per_feature"}), "features depend on the whole recording"),
        (with_parts(features={"gain": "peak"}), "features depend on the whole recording"),
    ],
)
def test_what_keeps_a_model_from_it_is_said(model, reason):
    with pytest.raises(ConfigError, match=f"cannot stream with the states of its layers: .*{reason}"):
        check_carries(model)
    assert model_presets(model) == {}
    with pytest.raises(ConfigError, match=reason):
        nearest_preset(model, 1.0)


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        with_parts({"conv_causal": False, "conv_kernel": 1}),
        with_parts({"conv_causal": False, "kind": "transformer"}),
        with_parts(head={"permutation": "label"}),
        with_parts(head={"permutation": "soft", "estimate_layers": ()}),
        with_parts(features={"normalize": "fixed"}),
        with_parts({"attention": (SUMS,)}),
    ],
)
def test_it_streams_by_the_chunks_of_its_memories(model):
    check_carries(model)
    assert memory_chunk_frames(model) == 125
    assert {name: config.chunk_frames for name, config in model_presets(model).items()} == {"10s": 125}
    assert nearest_preset(model, 1.0) == "10s"


def test_running_sums_stream_at_any_latency():
    model = with_parts({"attention": (SUMS,)}, {"attention": (SUMS,)})
    assert memory_chunk_frames(model) is None
    presets = model_presets(model)
    assert list(presets) == ["30s", "10s", "1s", "0.3s"]
    for name, config in presets.items():
        assert config.latency_s == pytest.approx(float(name.removesuffix("s")), abs=0.05)
        assert (config.speaker_cache.frames, config.fifo_frames, config.right_context_frames) == (0, 0, 0)
    with pytest.raises(ConfigError, match=r"no streaming preset '5s'; known: 30s, 10s, 1s, 0\.3s"):
        model_preset(model, "5s")


def test_a_model_without_memories_needs_none():
    with pytest.raises(ConfigError, match="layer 1 of the encoder has no state"):
        check_carries(ModelConfig(FeatureConfig()))

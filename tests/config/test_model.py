"""Model configs are always valid, and survive a round trip through plain dictionaries."""

import pytest

from sortformer.config.attention import AttentionConfig
from sortformer.config.combiners import CombinerRoutingCore
from sortformer.config.depth import ReversibleDepth, UniversalDepth
from sortformer.config.memories import TransformerXLMemory
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import StreamConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.errors import ConfigError
from tests.small_models import SHAPES

XL = AttentionConfig(memory=TransformerXLMemory())
ROUTING = AttentionConfig(CombinerRoutingCore(), "none")
TWO = (XL, AttentionConfig())


@pytest.mark.parametrize("config", [ModelConfig(), *SHAPES.values()])
def test_a_model_config_comes_back_from_its_dictionary(config):
    assert from_dict(ModelConfig, to_dict(config)) == config


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (FeatureConfig, {"normalize": "all"}, "normalize must be one of none, fixed, per_feature, got 'all'"),
        (EncoderConfig, {"kind": "konformer"}, "kind must be one of conformer, transformer, got 'konformer'"),
        (EncoderConfig, {"dim": 144.0}, r"dim must be a whole number, got 144\.0"),
        (HeadConfig, {"permutation": "hrad"}, "permutation must be one of hard, .* got 'hrad'"),
        (HeadConfig, {"upsampling": 3}, "upsampling must be one of 1, 2, 4, 8, got 3"),
        (ModelConfig, {"labelling": "mine"}, "labelling must be one of cover, nemo, got 'mine'"),
        (PostprocessConfig, {"decision": "best"}, "decision must be one of slots, least_error, got 'best'"),
        (StreamConfig, {"chunk_frames": 1.5}, r"chunk_frames must be a whole number, got 1\.5"),
        (StreamConfig, {"chunk_frames": "6"}, "chunk_frames must be a whole number, got '6'"),
        (HeadConfig, {"upsampling": True}, "upsampling must be one of 1, 2, 4, 8, got True"),
        (StreamConfig, {"chunk_frames": 6, "max_speakers": 1.5}, r"max_speakers must be a whole number, got 1\.5"),
        (StreamConfig, {"chunk_frames": True}, "chunk_frames must be a whole number, got True"),
        (
            StreamConfig,
            {"chunk_frames": 6, "speaker_cache": None},
            "speaker_cache must be of type SpeakerCacheConfig, got None",
        ),
        (FeatureConfig, {"num_mels": 0}, "num_mels must be between 1 and 257"),
        (FeatureConfig, {"num_mels": 258}, "num_mels must be between 1 and 257"),
        (EncoderConfig, {"dim": 0}, "encoder dim must be >= 1 .* got 0"),
        (EncoderConfig, {"layers": -1}, "encoder layers must be between 0 and 1000, got -1"),
        (EncoderConfig, {"dim": 30, "heads": 4}, "encoder dim 30 is not a multiple of its 4 heads"),
        (EncoderConfig, {"dim": 6, "heads": 2}, "'rope' needs an even number of channels .* encoder, got 3"),
        (EncoderConfig, {"layers": 10**9}, "encoder layers must be between 0 and 1000, got 1000000000"),
        (EncoderConfig, {"conv_kernel": 8}, "conv_kernel must be odd, got 8"),
        (EncoderConfig, {"conv_kernel": -1}, "encoder conv_kernel must be >= 1"),
        (EncoderConfig, {"dim": 10**9}, "encoder dim must be >= 1 and <= 1048576, got 1000000000"),
        (EncoderConfig, {"dropout": 1.0}, "dropout must be in"),
        (EncoderConfig, {"window_frames": 0}, "window_frames must be >= 1, got 0"),
        (EncoderConfig, {"window_frames": 9, "position": "xl"}, "core 'local' does not support the position 'xl'"),
        (EncoderConfig, {"window_frames": 9, "position": "shaw"}, "core 'local' does not support the position 'shaw'"),
        (EncoderConfig, {"narrowband_channels": 0}, "encoder narrowband_channels must be >= 1 .* got 0"),
        (HeadConfig, {"num_slots": 0}, "head num_slots must be >= 1 .* got 0"),
        (HeadConfig, {"layers": -1, "estimate_layers": ()}, "head layers must be between 0 and 1000, got -1"),
        (HeadConfig, {"dim": 30, "heads": 4}, "head dim 30 is not a multiple of its 4 heads"),
        (HeadConfig, {"dim": 6, "heads": 2}, "'rope' needs an even number of channels .* head, got 3"),
        (HeadConfig, {"estimate_layers": (4,)}, r"estimate_layers \(4,\) must lie in 0\.\.3"),
        (HeadConfig, {"estimate_layers": (-1,)}, r"must lie in 0\.\.3"),
        (HeadConfig, {"estimate_layers": (2, 1)}, "be strictly increasing"),
        (HeadConfig, {"estimate_layers": (1, 1)}, "be strictly increasing"),
        (HeadConfig, {"dropout": -0.1}, "dropout must be in"),
        (HeadConfig, {"residual": "gru", "norm": "post"}, "residual 'gru' needs norm 'pre'"),
        (HeadConfig, {"ff_chunk_frames": 0}, "ff_chunk_frames must be >= 1, got 0"),
        (
            EncoderConfig,
            {"depth": ReversibleDepth()},
            "of the encoder .* a norm that cannot be inverted",
        ),
        (HeadConfig, {"depth": ReversibleDepth(), "norm": "post"}, "'reversible' of the head .* cannot be inverted"),
        (HeadConfig, {"depth": ReversibleDepth(), "residual": "gru"}, "gates cannot be inverted"),
        (HeadConfig, {"depth": ReversibleDepth(), "attention": (XL,)}, "computes each layer twice"),
        (HeadConfig, {"depth": ReversibleDepth(), "attention": (ROUTING,)}, "whose clusters change with each pass"),
        (EncoderConfig, {"depth": UniversalDepth(), "layers": 0}, "needs a layer to repeat, but there is none"),
        (
            EncoderConfig,
            {"depth": UniversalDepth(), "layers": 2, "attention": (XL, AttentionConfig())},
            "one attention",
        ),
        (HeadConfig, {"depth": UniversalDepth(halting=True)}, "leave estimate_layers empty, or set halting = false"),
        (UniversalDepth, {"halt_at": 0.0}, "halt_at of the depth 'universal' must be above 0"),
        (HeadConfig, {"order_temperature_frames": 0.0}, "order_temperature_frames must be at least 0.001"),
        (HeadConfig, {"order_temperature_frames": 1e-300}, "order_temperature_frames must be at least 0.001"),
        (HeadConfig, {"arrival_sharpness": 0.0}, "arrival_sharpness must be positive"),
        (HeadConfig, {"arrival_sharpness": float("inf")}, "arrival_sharpness must be positive, and at most 1000"),
    ],
)
def test_an_impossible_config_is_refused_with_the_reason(kind, values, message):
    with pytest.raises(ConfigError, match=message):
        kind(**values)


def test_other_positions_take_odd_heads():
    assert EncoderConfig(dim=6, heads=2, position="xl").dim == 6

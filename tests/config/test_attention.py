"""Attention configs: validation, plain dictionaries, and one per layer; without one the default model."""

import json
from dataclasses import fields
from typing import get_args

import pytest
import torch

from sortformer.checkpoint import load, save
from sortformer.config import combiners, cores, memories
from sortformer.config.attention import AttentionConfig
from sortformer.config.bounds import Bounded
from sortformer.config.model import EncoderConfig, HeadConfig, ModelConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.errors import ConfigError
from tests.attention.cases import CASES, name
from tests.small_models import small_config, small_model

MIXED = small_config(
    {
        "attention": (
            AttentionConfig(cores.FavorCore(features=8), "rope", memories.CompressiveMemory(chunk_frames=9)),
            AttentionConfig(combiners.CombinerFixedCore(block_frames=4), "sinusoidal"),
        )
    },
    {
        "attention": (
            AttentionConfig(cores.DilatedCore(reach=2), "shaw", memories.TransformerXLMemory(frames=4, chunk_frames=5)),
        )
    },
)


@pytest.mark.parametrize("config", [AttentionConfig(case.config) for case in CASES], ids=lambda c: name(c.core))
def test_it_comes_back_from_json(config: AttentionConfig):
    assert from_dict(AttentionConfig, json.loads(json.dumps(to_dict(config)))) == config


@pytest.mark.parametrize("memory", [memories.NoMemory(), memories.CompressiveMemory(ratio=3), memories.NearestMemory()])
def test_a_memory_comes_back_from_json(memory: memories.Memory):
    config = AttentionConfig(memory=memory)
    assert from_dict(AttentionConfig, json.loads(json.dumps(to_dict(config)))) == config


def test_a_name_alone_stands_for_a_mechanism_with_its_defaults():
    assert from_dict(AttentionConfig, {"core": "favor", "memory": "xl"}) == AttentionConfig(
        cores.FavorCore(), memory=memories.TransformerXLMemory()
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"core": None}, "core must be one of full, local, .*, or a table of such a kind, got None"),
        ({"core": "favour"}, "core must be one of full, local, .*, or a table of such a kind, got 'favour'"),
        ({"core": {"features": 3}}, "core must be one of full, local, .*, or a table of such a kind, got"),
        ({"core": {"kind": "favor", "feature": 3}}, "unknown key 'feature' in core .*did you mean 'features'"),
        ({"position": "xi"}, "position must be one of none, sinusoidal"),
        ({"learned_positions": 0}, "learned_positions must be >= 1"),
        ({"core": {"kind": "local", "window_frames": 0}}, "window_frames of the attention core 'local' must be >= 1"),
        ({"core": {"kind": "fixed", "block_frames": 2}}, "summary_frames 8 exceeds block_frames 2"),
        ({"core": {"kind": "linformer", "ratio": 3, "projection": "learned"}}, "chunk_frames 256 .* of ratio 3"),
        ({"core": {"kind": "reformer", "buckets": 3}}, "buckets .* must be 1 or even, got 3"),
        (
            {"core": {"kind": "routing", "decay": 2}},
            "decay of the attention core 'routing' must be >= 0 and <= 1, got 2",
        ),
        ({"core": {"kind": "sinkhorn", "temperature": 0}}, "temperature .* must be at least 0.001, got 0"),
        ({"core": {"kind": "sinkhorn", "cut_blocks": 2, "causal": True}}, "cut_blocks .* it cannot be causal"),
        ({"core": {"kind": "combiner_axial", "plan": "rowmajor", "pool": "max"}}, "leave pool at 'mean', got 'max'"),
        ({"memory": {"kind": "compressive", "ratio": 0}}, "ratio of the memory 'compressive' must be >= 1"),
        ({"memory": {"kind": "compressive", "compression": "mean", "loss": "autoencoding"}}, "nothing to train"),
        ({"memory": {"kind": "compressive", "compression": "most_used", "loss": "autoencoding"}}, "nothing to train"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(AttentionConfig, values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"position": "ropee"}, "position must be one of none, sinusoidal, .*, got 'ropee'"),
        ({"learned_positions": 2.5}, "learned_positions must be a whole number"),
        ({"core": cores.FullCore(causal="yes")}, "causal must be bool, got 'yes'"),
    ],
)
def test_a_wrong_word_in_python_is_refused_as_in_a_file(values, message):
    with pytest.raises(ConfigError, match=message):
        AttentionConfig(**values)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cores.FavorCore(features=2.5), "features must be a whole number, got 2.5"),
        (lambda: cores.LocalCore(window_frames="5"), "window_frames must be a whole number, got '5'"),
        (lambda: cores.RoutingCore(decay=None), "decay must be a number, got None"),
        (lambda: cores.FavorCore(kernel="relux"), "kernel must be one of softmax, relu, got 'relux'"),
        (lambda: combiners.CombinerFixedCore(pool="men"), "pool must be one of max, mean, .*, got 'men'"),
        (lambda: memories.CompressiveMemory(loss="atention"), "loss must be one of attention, .* got 'atention'"),
        (lambda: cores.SinkhornCore(temperature="hot"), "temperature must be a number, got 'hot'"),
        (lambda: cores.BigBirdCore(seed="one"), "seed must be a whole number, got 'one'"),
        (lambda: cores.BigBirdCore(seed=-1), "seed of the attention core 'bigbird' must be >= 0, got -1"),
        (lambda: memories.NearestMemory(frames=2**40), "frames of the memory 'knn' must be >= 0 and <= 1048576, got"),
    ],
)
def test_a_value_that_cannot_be_is_refused_where_it_is_given(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


BOUNDED = [kind for kind in get_args(cores.Core | memories.Memory) if issubclass(kind, Bounded)]


@pytest.mark.parametrize("kind", BOUNDED, ids=lambda kind: kind.__name__)
def test_every_mechanism_refuses_numbers_out_of_their_bounds(kind: type):
    for each in fields(kind):
        if "bounds" in each.metadata:
            least, most = each.metadata["bounds"]
            for value in (least - 1, most + 1):
                with pytest.raises(ConfigError, match=rf"^{each.name} of the .* must be >= {least} .*, got {value}$"):
                    kind(**{each.name: value})


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (
            EncoderConfig,
            {"attention": (AttentionConfig(),) * 2},
            "must be given once or for each of its 5 layers, got 2",
        ),
        (HeadConfig, {"attention": (AttentionConfig(),) * 3}, "must be given once or for each of its 4 layers, got 3"),
        (EncoderConfig, {"attention": (AttentionConfig(),), "window_frames": 9}, "not supported with attention"),
        (
            EncoderConfig,
            {"dim": 6, "heads": 2, "position": "none", "attention": (AttentionConfig(position="rope"),)},
            "'rope' needs an even number of channels",
        ),
    ],
)
def test_layers_and_their_attention_fit(kind, values, message):
    with pytest.raises(ConfigError, match=message):
        kind(**values)


def test_without_attention_layers_are_as_they_were():
    assert (
        EncoderConfig(window_frames=7).layer_attention
        == (AttentionConfig(cores.LocalCore(window_frames=7), "rope"),) * 5
    )
    assert HeadConfig(position="shaw").layer_attention == (AttentionConfig(position="shaw"),) * 4


def test_a_config_that_was_written_before_there_was_attention_still_loads():
    values = to_dict(ModelConfig())
    del values["encoder"]["attention"], values["head"]["attention"]
    assert from_dict(ModelConfig, values) == ModelConfig()


def test_every_layer_of_a_model_can_attend_in_its_own_way(tmp_path):
    model = small_model(MIXED)
    wave = 0.1 * torch.randn(2, 24_000, generator=torch.Generator().manual_seed(0))
    save(tmp_path, model)
    loaded, _ = load(tmp_path)
    assert loaded.config == MIXED
    with torch.no_grad():
        whole = model(wave, torch.tensor([24_000, 15_000]))
        torch.testing.assert_close(loaded(wave, torch.tensor([24_000, 15_000])).logits, whole.logits, atol=0, rtol=0)
        alone = model(wave[1:, :15_000])
    frames = alone.logits.shape[1]
    torch.testing.assert_close(whole.logits[1, :frames], alone.logits[0], atol=1e-5, rtol=1e-5)

"""Conversion changes the format only, and refuses what NeMo cannot express."""

import json
from dataclasses import replace

import pytest
import torch

from sortformer import checkpoint
from sortformer.checkpoint.nemo_export import write_nemo
from sortformer.config.attention import AttentionConfig
from sortformer.config.depth import UniversalDepth
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.model import Sortformer
from tests.checkpoint.archives import recorded_parts
from tests.checkpoint.goldens import GOLDEN

NEMO = ModelConfig(
    FeatureConfig(num_mels=16),
    EncoderConfig(
        subsampling_channels=4,
        dim=16,
        layers=1,
        heads=2,
        ff_dim=32,
        conv_norm="batch",
        position="xl",
        input_scale=True,
    ),
    HeadConfig(
        dim=8, layers=1, heads=2, ff_dim=16, norm="post", position="none", permutation="none", estimate_layers=()
    ),
    labelling="nemo",
)


def weights_of(model: Sortformer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same_model(one: Sortformer, other: Sortformer) -> None:
    assert one.config == other.config
    ours, theirs = weights_of(one), weights_of(other)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


def test_to_our_folder_and_back_to_a_nemo_with_the_same_bits(tmp_path):
    checkpoint.convert(GOLDEN / "tiny_v1.nemo", tmp_path / "ours")
    checkpoint.convert(tmp_path / "ours", tmp_path / "back.nemo")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back.nemo", "ours"]
    original, _ = checkpoint.load(GOLDEN / "tiny_v1.nemo")
    for path in (tmp_path / "ours", tmp_path / "back.nemo"):
        assert_same_model(checkpoint.load(path)[0], original)


@pytest.mark.skipif(not checkpoint.EMBEDDED.exists(), reason="the package has no weights yet")
def test_the_model_in_the_package_has_a_name(tmp_path, monkeypatch):
    assert_same_model(checkpoint.load("embedded")[0], checkpoint.load(checkpoint.EMBEDDED)[0])
    monkeypatch.chdir(tmp_path)
    checkpoint.convert(GOLDEN / "tiny_v1.nemo", "embedded")
    assert_same_model(checkpoint.load("embedded")[0], checkpoint.load(GOLDEN / "tiny_v1.nemo")[0])  # the folder wins


def test_the_archive_is_what_nemo_itself_wrote(tmp_path):
    checkpoint.convert(GOLDEN / "tiny_v1.nemo", tmp_path / "back.nemo")
    values, weights = recorded_parts(tmp_path / "back.nemo")
    their_values, their_weights = recorded_parts()
    assert weights.keys() == their_weights.keys()
    for name, tensor in their_weights.items():
        assert weights[name].shape == tensor.shape, name
        assert weights[name].dtype == tensor.dtype, name
        if "hidden_to_spks" in name and "single" not in name:
            continue  # unused weights
        assert torch.equal(weights[name], tensor), name
    for section, theirs in their_values.items():
        if section in ("train_ds", "validation_ds", "optim", "lr"):
            continue  # settings of training
        if section == "encoder":
            theirs = {key: value for key, value in theirs.items() if not key.startswith("stochastic_depth")}
        assert values[section] == theirs, section
    assert values.keys() - their_values.keys() == {"streaming_mode"}
    assert values["streaming_mode"] is False


def test_nemotron_becomes_our_folder_with_the_same_output(tmp_path):
    checkpoint.convert(GOLDEN / "tiny_nemotron3", tmp_path / "ours")
    ours, theirs = checkpoint.load(tmp_path / "ours")[0], checkpoint.load(GOLDEN / "tiny_nemotron3")[0]
    assert_same_model(ours, theirs)
    feats, lengths = torch.randn(1, 80, 128), torch.tensor([80])
    with torch.inference_mode():
        assert torch.equal(ours.forward_features(feats, lengths).probs, theirs.forward_features(feats, lengths).probs)


@pytest.mark.parametrize("gain", ["none", "peak"])
def test_a_streaming_model_stays_one(tmp_path, gain):
    model = Sortformer(replace(NEMO, features=replace(NEMO.features, gain=gain))).eval()
    write_nemo(tmp_path / "model.nemo", model)
    assert_same_model(checkpoint.load(tmp_path / "model.nemo")[0], model)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (ModelConfig(), "permutation encodings"),
        (replace(NEMO, head=replace(NEMO.head, estimate_layers=(0,))), "it has estimates"),
        (replace(NEMO, features=replace(NEMO.features, normalize="fixed")), "by constants"),
        (replace(NEMO, head=replace(NEMO.head, num_slots=8)), "8 slots"),
        (replace(NEMO, head=replace(NEMO.head, upsampling=8)), "shorter than 80 ms"),
        (replace(NEMO, encoder=replace(NEMO.encoder, kind="transformer", position="rope")), "not a Conformer"),
        (replace(NEMO, encoder=replace(NEMO.encoder, subsampling="stacking")), "'stacking'"),
        (replace(NEMO, encoder=replace(NEMO.encoder, position="rope")), "'rope', not 'xl'"),
        (replace(NEMO, encoder=replace(NEMO.encoder, position="rope", window_frames=9)), "not 'xl'"),
        (
            replace(NEMO, encoder=replace(NEMO.encoder, position="rope", attention=(AttentionConfig(position="xl"),))),
            "set their own attention",
        ),
        (
            replace(NEMO, head=replace(NEMO.head, attention=(AttentionConfig(position="none"),))),
            "set their own attention",
        ),
        (replace(NEMO, encoder=replace(NEMO.encoder, conv_norm="layer")), "by layer"),
        (replace(NEMO, encoder=replace(NEMO.encoder, residual="gru")), "have gates"),
        (replace(NEMO, head=replace(NEMO.head, residual="gru", norm="pre")), "have gates"),
        (replace(NEMO, encoder=replace(NEMO.encoder, depth=UniversalDepth())), "depth is not 'stacked'"),
        (replace(NEMO, head=replace(NEMO.head, depth=UniversalDepth())), "depth is not 'stacked'"),
        (replace(NEMO, encoder=replace(NEMO.encoder, conv_causal=True)), "causal"),
        (replace(NEMO, encoder=replace(NEMO.encoder, ff_dim=40)), "not a multiple"),
        (replace(NEMO, encoder=replace(NEMO.encoder, learned_silence=True)), "silence"),
        (replace(NEMO, head=replace(NEMO.head, dim=16)), "the same dim"),
        (replace(NEMO, head=replace(NEMO.head, position="rope")), "'rope' positions"),
        (replace(NEMO, head=replace(NEMO.head, norm="pre")), "normalises before"),
        (replace(NEMO, head=replace(NEMO.head, activation="gelu")), "'gelu'"),
    ],
)
def test_what_nemo_cannot_express_is_refused_with_the_reason(tmp_path, config, reason):
    checkpoint.save(tmp_path / "ours", Sortformer(config))
    with pytest.raises(InputError, match="NeMo cannot express this model") as caught:
        checkpoint.convert(tmp_path / "ours", tmp_path / "theirs.nemo")
    assert reason in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_nothing_is_overwritten(tmp_path):
    for name in ("there.nemo", "folder"):
        out = tmp_path / name
        if out.suffix:
            out.write_text("mine")
        else:
            out.mkdir()
            (out / "notes.txt").write_text("mine")
        with pytest.raises(InputError, match="exists already"):
            checkpoint.convert(GOLDEN / "tiny_v1.nemo", out)
        with pytest.raises(InputError, match="overwrite must be True or False, got 'no'"):
            checkpoint.convert(GOLDEN / "tiny_v1.nemo", out, overwrite="no")  # type: ignore[arg-type]
    assert (tmp_path / "there.nemo").read_text() == "mine"


def test_a_folder_that_is_empty_may_be_filled(tmp_path):
    (tmp_path / "ours").mkdir()
    checkpoint.convert(GOLDEN / "tiny_v1.nemo", tmp_path / "ours")
    assert_same_model(checkpoint.load(tmp_path / "ours")[0], checkpoint.load(GOLDEN / "tiny_v1.nemo")[0])


@pytest.mark.parametrize("name", ["model.nemo", "model"])
def test_folders_on_the_way_are_made(tmp_path, name):
    out = tmp_path / "no" / "such" / name
    checkpoint.convert(GOLDEN / "tiny_v1.nemo", out)
    assert_same_model(checkpoint.load(out)[0], checkpoint.load(GOLDEN / "tiny_v1.nemo")[0])


def test_an_impossible_place_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    for name in ("model.nemo", "model"):
        with pytest.raises(InputError, match="cannot write"):
            checkpoint.convert(GOLDEN / "tiny_v1.nemo", tmp_path / "file" / name)


def test_a_folder_is_not_named_as_a_file_of_another_format(tmp_path):
    with pytest.raises(InputError, match=r"cannot write a model as \.pt: end .*model\.pt in \.nemo or \.onnx, or"):
        checkpoint.convert(GOLDEN / "tiny_v1.nemo", tmp_path / "model.pt")
    assert not list(tmp_path.iterdir())


def test_post_processing_and_licence_travel_in_our_folder(tmp_path):
    settings = PostprocessConfig(onset=0.6)
    checkpoint.save(tmp_path / "one", Sortformer(NEMO), settings, licence="CC-BY-NC-4.0")
    with pytest.warns(UserWarning, match="no commercial use"):
        checkpoint.convert(tmp_path / "one", tmp_path / "two")
    assert json.loads((tmp_path / "two" / "config.json").read_text())["licence"] == "CC-BY-NC-4.0"
    with pytest.warns(UserWarning, match="no commercial use"):
        assert checkpoint.load(tmp_path / "two")[1] == settings

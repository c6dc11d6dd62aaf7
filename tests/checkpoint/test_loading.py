"""One function loads every format, explains errors in a sentence, and mentions the licence."""

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sortformer import checkpoint
from sortformer.checkpoint.huggingface import ModelId, parse_id
from sortformer.checkpoint.licences import licence_of
from sortformer.checkpoint.loading import read
from sortformer.checkpoint.nemo_config import model_config
from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.errors import InputError
from sortformer.model import Sortformer
from tests.checkpoint.archives import recorded_parts
from tests.checkpoint.goldens import GOLDEN

SMALL = ModelConfig(
    FeatureConfig(num_mels=16),
    EncoderConfig(subsampling_channels=4, dim=8, layers=1, heads=2, ff_dim=16),
    HeadConfig(dim=8, layers=2, heads=2, ff_dim=16, estimate_layers=(1,)),
)


def test_loading_draws_no_random_numbers(tmp_path):
    checkpoint.save(tmp_path, Sortformer(SMALL))
    before = torch.get_rng_state()
    one, _ = checkpoint.load(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    wave = torch.randn(1, 16_000, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert torch.equal(one(wave).probs, checkpoint.load(tmp_path)[0](wave).probs)
    for parameter in one.parameters():
        assert parameter.requires_grad
        assert torch.isfinite(parameter).all()


@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_our_folders_keep_their_bits_and_counters(tmp_path, norm, dtype):
    model = Sortformer(replace(SMALL, encoder=replace(SMALL.encoder, conv_norm=norm)))
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            tensor.fill_(70_001)  # more than half precision can say
    checkpoint.save(tmp_path, model, dtype=dtype)
    loaded, _ = checkpoint.load(tmp_path)
    for name, tensor in model.state_dict().items():
        own = loaded.state_dict()[name]
        assert own.dtype == tensor.dtype, name
        kept = tensor.to(dtype).to(tensor.dtype) if tensor.is_floating_point() else tensor
        assert torch.equal(own, kept), name


@pytest.mark.parametrize("source", ["nothing here", "models/mine.nemo", "./models/mine", "/no/such/folder", "mine"])
def test_what_can_only_be_a_path_is_not_looked_for_elsewhere(source, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sortformer.checkpoint.huggingface.download", lambda _: pytest.fail("went to the network"))
    with pytest.raises(InputError, match="there is no model"):
        checkpoint.load(source)


def test_a_frozen_program_without_the_model_is_told_how_to_include_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sortformer.checkpoint.loading.EMBEDDED", tmp_path / "weights")
    for source in ("embedded", tmp_path / "weights"):
        with pytest.raises(InputError, match=r"lacks the folder of its model.*--collect-data sortformer"):
            checkpoint.load(source)


def test_a_folder_of_something_else_says_of_what(tmp_path):
    with pytest.raises(InputError, match=r"holds no model: it has no config\.json \(a model is config"):
        checkpoint.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "wav2vec2"}')
    with pytest.raises(InputError, match=r"its model_type is not '.*', but 'wav2vec2'$"):
        checkpoint.load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"its format is not '.*', and its model_type is not '[^,]*'$"):
        checkpoint.load(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match="not a JSON object"):
        checkpoint.load(tmp_path)


def test_a_file_of_a_folder_is_told_to_be_one(tmp_path):
    checkpoint.save(tmp_path, Sortformer(SMALL))
    for name in ("config.json", "model.safetensors"):
        with pytest.raises(InputError, match=f"{name} is one of the two files of a model: give its folder, {tmp_path}"):
            checkpoint.load(tmp_path / name)


def test_a_graph_for_other_runtimes_is_told_to_be_one(tmp_path):
    (tmp_path / "e.onnx").write_bytes(b"\x08\x0a")
    with pytest.raises(
        InputError, match=r"e\.onnx is for other runtimes \(ONNX\): give the model that it was exported"
    ):
        checkpoint.load(tmp_path / "e.onnx")
    with pytest.raises(InputError, match=r"there is no model out/absent\.onnx"):
        checkpoint.load("out/absent.onnx")


def test_a_folder_with_several_archives_says_which_there_are(tmp_path):
    for name in ("v1.nemo", "v2.nemo"):
        shutil.copyfile(GOLDEN / "tiny_v1.nemo", tmp_path / name)
    with pytest.raises(InputError, match=r"several models: give one of its files, v1\.nemo or v2\.nemo"):
        checkpoint.load(tmp_path)


def test_our_model_goes_before_archives_beside_it(tmp_path):
    checkpoint.save(tmp_path, Sortformer(SMALL))
    for name in ("v1.nemo", "v2.nemo"):
        shutil.copyfile(GOLDEN / "tiny_v1.nemo", tmp_path / name)
        assert checkpoint.load(tmp_path)[0].config == SMALL


def test_the_folder_of_a_training_run_says_where_its_model_is(tmp_path):
    checkpoint.save(tmp_path / "model", Sortformer(SMALL))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=f"is the folder of a training run; its model is in {tmp_path / 'model'}"):
        checkpoint.load(tmp_path)


def test_an_id_is_an_owner_a_name_and_a_revision():
    assert parse_id("nvidia/Nemotron-3-Diarization") == ModelId("nvidia", "Nemotron-3-Diarization")
    assert parse_id("nvidia/diar_streaming_sortformer_4spk-v2.1@main") == ModelId(
        "nvidia", "diar_streaming_sortformer_4spk-v2.1", "main"
    )
    files = ("a/b.nemo", "a/b.onnx", "a/b.json", "a/b.safetensors")
    for path in (*files, "one", "a/b/c", "../a", "~/a", "/a/b", "a/", "a b/c", "a/b@"):
        assert parse_id(path) is None, path


def test_v1_reminds_of_its_licence_by_name_and_by_shape(tmp_path):
    shutil.copyfile(GOLDEN / "tiny_v1.nemo", tmp_path / "diar_sortformer_4spk-v1.nemo")
    with pytest.warns(UserWarning, match=r"CC-BY-NC-4\.0: no commercial use") as caught:
        checkpoint.load(tmp_path / "diar_sortformer_4spk-v1.nemo")
    assert len(caught) == 1
    assert caught[0].filename == __file__

    published = recorded_parts()[0]
    published["encoder"] |= {"n_layers": 18, "d_model": 512, "n_heads": 8}
    published["sortformer_modules"]["fc_d_model"] = 512
    assert licence_of("renamed", model_config(published)) == "CC-BY-NC-4.0"


def test_the_model_in_the_package_has_the_licence_of_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert read("embedded").licence == project["license"]


def test_nemotron_has_the_licence_of_the_name_that_it_is_published_by(tmp_path):
    for name, licence in (("Nemotron-3-Diarization", "OpenMDW-1.1"), ("mine", None)):
        shutil.copytree(GOLDEN / "tiny_nemotron3", tmp_path / name)
        assert read(tmp_path / name).licence == licence


def test_other_models_load_in_silence(tmp_path):
    checkpoint.save(tmp_path, Sortformer(SMALL))
    checkpoint.load(tmp_path)
    checkpoint.load(GOLDEN / "tiny_v1.nemo")
    checkpoint.load(GOLDEN / "tiny_nemotron3")

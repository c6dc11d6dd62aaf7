"""Our own checkpoints: bit-identical after saving and loading, and one sentence for each kind of damage."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from sortformer import Diarizer, checkpoint
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.model import Sortformer
from tests.small_models import SHAPES, small_config, small_model


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    checkpoint.save(tmp_path / "model", small_model(small_config()))
    return tmp_path / "model"


def test_what_is_no_model_is_not_saved(tmp_path: Path):
    with pytest.raises(InputError, match=r"a Sortformer is needed, such as diarizer\.model, got Diarizer"):
        checkpoint.save(tmp_path / "model", Diarizer.load())  # pyright: ignore[reportArgumentType]
    assert not (tmp_path / "model").exists()
    checkpoint.save(tmp_path / "model", small_model(small_config()).train())


def test_what_is_no_postprocessing_is_not_saved(tmp_path: Path):
    with pytest.raises(InputError, match="postprocess must be a PostprocessConfig, or a name, got dict"):
        checkpoint.save(tmp_path / "model", small_model(small_config()), {"onset": 0.6})  # pyright: ignore[reportArgumentType]
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"dtype": torch.int8}, "weights are saved as float16, .*, got dtype=torch.int8"),
        ({"dtype": "float16"}, "got dtype='float16'"),
        ({"licence": 3}, "the licence of weights must be a str, got 3"),
    ],
)
def test_what_could_not_be_read_is_not_saved(wrong, why, tmp_path):
    with pytest.raises(InputError, match=why):
        checkpoint.save(tmp_path / "model", small_model(small_config()), **wrong)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("value", "dtype"), [(1e6, torch.float16), (1e39, torch.float64), (float("nan"), torch.float32)]
)
def test_weights_that_would_not_be_finite_are_not_saved(value, dtype, saved):
    before, model = (saved / "model.safetensors").read_bytes(), small_model(small_config()).double()
    with torch.no_grad():
        model.head.out.bias.fill_(value)
    with pytest.raises(InputError, match=r"the weights in head\.out\.bias diverged, or are too large for float"):
        checkpoint.save(saved, model, dtype=dtype)
    assert (saved / "model.safetensors").read_bytes() == before


def test_weights_that_overflow_in_float16_are_saved_as_float32(saved):
    model = small_model(small_config())
    with torch.no_grad():
        model.head.out.bias.fill_(1e6)
    checkpoint.save(saved, model)
    checkpoint.load(saved)


def change_config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def change_weights(folder: Path, change) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


def header(shape: list[int]) -> bytes:
    """Return a safetensors file of one tensor without elements."""
    told = json.dumps({"weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    return len(told).to_bytes(8, "little") + told


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_loaded_answers_with_the_same_bits(shape, tmp_path):
    model = small_model(SHAPES[shape])
    checkpoint.save(tmp_path, model, PostprocessConfig(onset=0.6))
    loaded, postprocess = checkpoint.load(tmp_path)
    assert loaded.config == model.config
    assert postprocess == PostprocessConfig(onset=0.6)
    assert not loaded.training
    assert loaded.state_dict().keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert loaded.state_dict()[name].equal(tensor), name
        assert loaded.state_dict()[name].dtype is tensor.dtype
    wave = 0.1 * torch.randn(2, 9_000, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(loaded(wave).logits, model(wave).logits, atol=0, rtol=0)


def test_half_precision_halves_the_file_and_loads_as_float32(tmp_path):
    model = small_model(small_config({"conv_norm": "batch"}))
    checkpoint.save(tmp_path / "whole", model)
    checkpoint.save(tmp_path / "half", model, dtype=torch.float16)
    sizes = [os.path.getsize(tmp_path / name / "model.safetensors") for name in ("half", "whole")]
    assert sizes[0] < 0.75 * sizes[1]
    loaded, _ = checkpoint.load(tmp_path / "half")
    for name, tensor in model.state_dict().items():
        assert loaded.state_dict()[name].dtype is tensor.dtype
        torch.testing.assert_close(loaded.state_dict()[name], tensor, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_a_model_of_another_precision_loads_as_float32(tmp_path, dtype):
    model = small_model(small_config({"conv_norm": "batch"})).to(dtype)
    checkpoint.save(tmp_path, model)
    loaded, _ = checkpoint.load(tmp_path)
    for name, tensor in model.float().state_dict().items():
        assert loaded.state_dict()[name].equal(tensor), name
        assert loaded.state_dict()[name].dtype is tensor.dtype


def test_a_loaded_model_does_not_change_with_its_file(saved):
    model, _ = checkpoint.load(saved)
    wave = torch.randn(1, 9_000)
    before = model(wave).logits
    weights = saved / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))  # over what is there, as `cp` writes
    torch.testing.assert_close(model(wave).logits, before, atol=0, rtol=0)


def test_a_loaded_model_can_be_trained_further(saved):
    model, _ = checkpoint.load(saved)
    model.train()(torch.randn(1, 9_000)).logits.sum().backward()
    assert model.head.out.weight.grad is not None


def test_saving_again_replaces_what_was_there_and_leaves_no_drafts(saved):
    other = small_model(small_config(), seed=5)
    checkpoint.save(saved, other)
    loaded, _ = checkpoint.load(saved)
    assert loaded.head.out.weight.equal(other.head.out.weight)
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", "model.safetensors"]


def test_whoever_reads_the_config_reads_the_weights(saved):
    modes = [(saved / name).stat().st_mode for name in ("config.json", "model.safetensors")]
    assert modes[0] == modes[1]


def test_a_save_that_fails_leaves_the_old_weights(saved, monkeypatch):
    before = (saved / "model.safetensors").read_bytes()

    def full_disk(path, content):
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="no space"):
        checkpoint.save(saved, small_model(small_config(), seed=5))
    assert (saved / "model.safetensors").read_bytes() == before
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", "model.safetensors"]


def test_weights_that_are_not_finite_are_refused(saved):
    change_weights(saved, lambda weights: weights["head.out.bias"][:1].fill_(float("nan")))  # one is enough
    with pytest.raises(InputError, match=r"model.safetensors holds weights that are not finite \(head.out.bias\)"):
        checkpoint.load(saved)


def make_a_folder_of(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE = {
    "no config": (lambda folder: (folder / "config.json").unlink(), r"holds no model: it has no config.json"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), r"holds no model: it has no model.saf"),
    "config is a folder": (lambda folder: make_a_folder_of(folder / "config.json"), r"cannot read .*config\.json: "),
    "weights are a folder": (
        lambda folder: make_a_folder_of(folder / "model.safetensors"),
        r"cannot read .*model\.safetensors: ",
    ),
    "empty config": (lambda folder: (folder / "config.json").write_text(""), r"config.json: not JSON"),
    "binary config": (lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe"), r"config.json: not JSON"),
    "deep config": (lambda folder: (folder / "config.json").write_text(99_999 * "["), r"config.json: not JSON"),
    "endless number": (
        lambda folder: change_config(folder, model={"encoder": {"dropout": 10**400}}),
        r"does not describe a model .*: model.encoder.dropout must be a number",
    ),
    "config is a list": (lambda folder: (folder / "config.json").write_text("[]"), r"not a JSON object"),
    "no format": (lambda folder: (folder / "config.json").write_text("{}"), r"not the config of a sortformer model"),
    "no depth": (
        lambda folder: change_config(folder, model={"encoder": {"depth": None}}),
        r"model.encoder.depth must be one of stacked, .*, or a table of such a kind, got None",
    ),
    "later format": (
        lambda folder: change_config(folder, format="sortformer/9"),
        r"its format is not 'sortformer/1'",
    ),
    "model is a number": (
        lambda folder: change_config(folder, model=3),
        r"does not describe a model .*: model must be",
    ),
    "unknown key": (
        lambda folder: change_config(folder, model={"encodr": {}}),
        r"unknown key 'encodr' in model of ModelConfig; did you mean 'encoder'\?",
    ),
    "impossible model": (
        lambda folder: change_config(folder, model={"encoder": {"layers": -1}}),
        r"encoder layers must be between 0 and 1000",
    ),
    "impossible postprocess": (
        lambda folder: change_config(folder, postprocess={"onset": 2.0}),
        r"does not describe a model .*: .*onset",
    ),
    "unknown part": (
        lambda folder: change_config(folder, postproces={"onset": 0.9}),
        r"does not describe a model that this version of the toolkit supports: "
        r"unknown key 'postproces' of ModelFile; did you mean 'postprocess'",
    ),
    "licence without a name": (
        lambda folder: change_config(folder, licence={"name": "MIT"}),
        r"does not describe a model .*: licence must be str",
    ),
    "sizes beyond 64 bits": (
        lambda folder: (folder / "model.safetensors").write_bytes(header(shape=[2**63, 0])),
        r"weights .* are damaged",
    ),
    "another model": (lambda folder: change_config(folder, model={}), r"do not match their config"),
    "truncated weights": (
        lambda folder: os.truncate(folder / "model.safetensors", 1000),
        r"weights .* are damaged .*; download or install them again",
    ),
    "empty weights": (lambda folder: (folder / "model.safetensors").write_bytes(b""), r"weights .* are damaged"),
    "random weights": (lambda folder: (folder / "model.safetensors").write_bytes(os.urandom(999)), r"are damaged"),
    "missing tensor": (
        lambda folder: change_weights(folder, lambda weights: weights.pop("head.out.bias")),
        r"do not match their config: they lack 'head.out.bias'$",
    ),
    "extra tensor": (
        lambda folder: change_weights(folder, lambda weights: weights.update(more=torch.zeros(2))),
        r"they contain the unknown 'more'$",
    ),
    "wrong shape": (
        lambda folder: change_weights(
            folder, lambda weights: weights.update({"head.out.bias": torch.zeros(7), "head.out.weight": torch.zeros(7)})
        ),
        r"they have a different shape for 'head.out.bias' and 1 more$",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_one_sentence_that_names_the_file(kind, saved):
    harm, message = DAMAGE[kind]
    harm(saved)
    with pytest.raises(InputError, match=message) as caught:
        checkpoint.load(saved)
    assert "\n" not in str(caught.value)
    assert str(saved) in str(caught.value)


def test_numbers_of_numpy_are_saved_as_what_they_are(tmp_path):
    shape = small_config()
    checkpoint.save(
        tmp_path, Sortformer(replace(shape, head=replace(shape.head, num_slots=np.int64(shape.head.num_slots))))
    )
    model, _ = checkpoint.load(tmp_path)
    assert model.config == shape


def test_an_absent_folder_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"there is no model .*absent.* folder"):
        checkpoint.load(tmp_path / "absent")

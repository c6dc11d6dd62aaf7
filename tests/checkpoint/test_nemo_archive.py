"""A ``.nemo`` archive is not trusted: each fault is one sentence, and nothing in it is executed or extracted."""

import gzip
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from sortformer import checkpoint
from tests.checkpoint.archives import pickled, recorded_parts, refusal, write_archive, write_tar
from tests.checkpoint.goldens import GOLDEN


@pytest.mark.parametrize(("name", "mode"), [("plain.nemo", "w"), ("packed.nemo", "w:gz")])
def test_a_sound_archive_loads_packed_or_not(tmp_path, name, mode):
    path = write_archive(tmp_path / name, *recorded_parts(), mode)
    model, _ = checkpoint.load(path)
    recorded, _ = checkpoint.load(GOLDEN / "tiny_v1.nemo")
    for key, tensor in recorded.state_dict().items():
        assert torch.equal(model.state_dict()[key], tensor), key
    assert not model.training


def test_a_folder_with_one_archive_is_that_archive(tmp_path):
    values, weights = recorded_parts()
    write_archive(tmp_path / "model.nemo", values, weights)
    model, _ = checkpoint.load(tmp_path)
    assert model.config.features.normalize == "per_feature"


def test_a_folder_with_the_form_of_another_library_too_is_that_archive(tmp_path):
    write_archive(tmp_path / "model.nemo", *recorded_parts())
    (tmp_path / "config.json").write_text('{"model_type": "sortformer"}')
    (tmp_path / "model.safetensors").write_bytes(b"for another library")
    model, _ = checkpoint.load(tmp_path)
    assert model.config.features.normalize == "per_feature"


def test_an_empty_file_a_text_and_a_cut_archive(tmp_path):
    empty, text, cut = tmp_path / "empty.nemo", tmp_path / "text.nemo", tmp_path / "cut.nemo"
    empty.write_bytes(b"")
    text.write_text("this is no tar\n" * 99)
    whole = (GOLDEN / "tiny_v1.nemo").read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    packed = tmp_path / "packed.nemo"
    packed.write_bytes(gzip.compress(whole)[:9000])
    for path in (empty, text, cut, packed):
        assert "damaged" in refusal(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no /proc")
def test_what_the_system_does_not_read_is_refused():
    assert refusal(Path("/proc/self/mem")) == "cannot read /proc/self/mem: Input/output error"


@pytest.mark.parametrize("member", ["model_config.yaml", "model_weights.ckpt"])
def test_a_missing_member_is_named(tmp_path, member):
    values, weights = recorded_parts()
    members = {"model_config.yaml": yaml.safe_dump(values).encode(), "model_weights.ckpt": pickled(weights)}
    del members[member]
    assert f"it has no {member}" in refusal(write_tar(tmp_path / "half.nemo", members))


@pytest.mark.parametrize("member", ["model_config.yaml", "model_weights.ckpt"])
def test_a_member_in_a_folder_is_said_to_be_there(tmp_path, member):
    values, weights = recorded_parts()
    members = {"model_config.yaml": yaml.safe_dump(values).encode(), "model_weights.ckpt": pickled(weights)}
    members[f"mine/{member}"] = members.pop(member)
    found = refusal(write_tar(tmp_path / "deep.nemo", members))
    assert found.endswith(f"it has no {member}, only 'mine/{member}': pack the files without their folder")


def test_a_checkpoint_of_pytorch_is_no_archive(tmp_path):
    path = tmp_path / "last.ckpt"
    path.write_bytes(pickled({"state_dict": recorded_parts()[1]}))
    assert refusal(path) == f"{path} is a zip, as PyTorch writes, not a .nemo archive: use NeMo's save_to()"


@pytest.mark.parametrize("name", ["../outside.txt", "sub/../../outside.txt", "/outside.txt"])
def test_a_member_outside_the_archive_is_refused_and_not_written(tmp_path, name):
    values, weights = recorded_parts()
    folder = tmp_path / "inside"
    folder.mkdir()
    path = write_tar(
        folder / "evil.nemo",
        {
            "model_config.yaml": yaml.safe_dump(values).encode(),
            name: b"got out",
            "model_weights.ckpt": pickled(weights),
        },
    )
    assert "points outside the archive" in refusal(path)
    assert sorted(tmp_path.rglob("*")) == [folder, path]


def test_a_link_is_not_followed(tmp_path):
    secret = tmp_path / "secret.yaml"
    secret.write_text("secret: true")
    link = tarfile.TarInfo("model_config.yaml")
    link.type, link.linkname = tarfile.SYMTYPE, str(secret)
    path = write_tar(tmp_path / "link.nemo", {"model_config.yaml": link, "model_weights.ckpt": pickled({})})
    assert "it has no model_config.yaml" in refusal(path)


class _Payload:
    """A malicious pickle: unpickling it makes a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


def test_a_pickle_that_imports_something_is_refused_and_not_executed(tmp_path):
    values, weights = recorded_parts()
    place = tmp_path / "executed"
    path = write_archive(tmp_path / "evil.nemo", values, weights | {"payload": _Payload(place)})
    assert "none of it was executed" in refusal(path)
    assert not place.exists()


@pytest.mark.parametrize("text", [b"a: [1, 2", b"!!python/object/apply:os.mkdir [executed]", b"\xff\xfe\x00", b"- 1\n"])
def test_a_description_that_is_no_plain_yaml_of_a_model(tmp_path, text, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_tar(tmp_path / "odd.nemo", {"model_config.yaml": text, "model_weights.ckpt": pickled({})})
    assert "model_config.yaml in" in refusal(path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("content", [b"no zip", b"", pickled([1, 2]), pickled({"a": 3})])
def test_weights_that_are_no_table_of_tensors(tmp_path, content):
    values, _ = recorded_parts()
    members = {"model_config.yaml": yaml.safe_dump(values).encode(), "model_weights.ckpt": content}
    assert "model_weights.ckpt in" in refusal(write_tar(tmp_path / "odd.nemo", members))


def test_weights_are_used_or_named_as_dropped(tmp_path):
    values, weights = recorded_parts()
    name = "sortformer_modules.encoder_proj.weight"

    def changed(file: str, more: dict[str, Any], without: str = "") -> str:
        kept = {key: tensor for key, tensor in (weights | more).items() if key != without}
        return refusal(write_archive(tmp_path / file, values, kept))

    assert "'sortformer_modules.activity.weight'" in changed(
        "more.nemo", {"sortformer_modules.activity.weight": torch.zeros(3, 32)}
    )
    assert f"lack '{name}'" in changed("fewer.nemo", {}, name)
    assert f"a different shape for '{name}'" in changed("shape.nemo", {name: torch.zeros(32, 63)})
    filters = weights["preprocessor.featurizer.fb"]
    for other in (filters * 1.01, filters[..., :-1]):
        assert "a different 'preprocessor.featurizer.fb'" in changed("mel.nemo", {"preprocessor.featurizer.fb": other})


@pytest.mark.parametrize("part", ["sortformer_modules.hidden_to_spks", "preprocessor."])
def test_what_nobody_reads_or_is_computed_here_may_be_missing(tmp_path, part):
    values, weights = recorded_parts()
    fewer = {key: tensor for key, tensor in weights.items() if not key.startswith(part)}
    assert len(fewer) < len(weights)
    checkpoint.load(write_archive(tmp_path / "fewer.nemo", values, fewer))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("part", ["encoder.layers", ""])
def test_half_precision_weights_become_float32(tmp_path, dtype, part):
    values, weights = recorded_parts()
    halves = {
        key: tensor.to(dtype) if part in key and tensor.is_floating_point() else tensor
        for key, tensor in weights.items()
    }
    model, _ = checkpoint.load(write_archive(tmp_path / "half.nemo", values, halves))
    assert {tensor.dtype for tensor in model.state_dict().values()} == {torch.float32, torch.int64}

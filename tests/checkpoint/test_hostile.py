"""Malicious checkpoints are refused with one sentence, before anything large is allocated."""

import gzip
import io
import json
import re
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from sortformer import checkpoint
from tests.checkpoint.archives import pickled, recorded_parts, refusal, write_archive, write_tar
from tests.small_models import small_config, small_model

PROJECTION = "sortformer_modules.encoder_proj.weight"


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("encoder.n_layers", 10**9, "layers must be between 0 and 1000"),
        ("transformer_encoder.num_layers", 10**9, "layers must be between 0 and 1000"),
        ("encoder.conv_kernel_size", -1, "encoder conv_kernel must be >= 1"),
        ("encoder.conv_kernel_size", 10**5 + 1, "a different shape for"),
        ("encoder.subsampling_conv_channels", 10**6, "a different shape for"),
        ("encoder.ff_expansion_factor", 10**4, "a different shape for"),
        ("encoder.ff_expansion_factor", 10**30, "encoder ff_dim must be >= 1 and <="),
        ("sortformer_modules.num_spks", 10**6, "a different shape for"),
        ("sortformer_modules.num_spks", 10**18, "head num_slots must be >= 1 and <="),
    ],
)
def test_a_description_of_more_than_the_file_holds(tmp_path, setting, value, says):
    values, weights = recorded_parts()
    section, _, key = setting.partition(".")
    values[section][key] = value
    assert says in refusal(write_archive(tmp_path / "large.nemo", values, weights))


@pytest.mark.parametrize(
    ("part", "values", "says"),
    [
        ("encoder", {"dim": 10**6, "heads": 1}, "a different shape for"),
        ("head", {"attention": [{"position": "learned", "learned_positions": 10**15}]}, "they lack"),
        (
            "head",
            {"attention": [{"position": "learned", "learned_positions": 10**18}]},
            "describes a model that is too large",
        ),
        ("head", {"attention": [{"core": {"kind": "favor", "features": 10**12}}]}, "must be >= 1 and <= 65536"),
    ],
)
def test_a_config_of_more_than_the_folder_holds(tmp_path, part, values, says):
    checkpoint.save(tmp_path, small_model(small_config()))
    config = json.loads((tmp_path / "config.json").read_text())
    config["model"][part] |= values
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert re.search(says, refusal(tmp_path))


@pytest.mark.filterwarnings("ignore::UserWarning")  # those of torch about such tensors
@pytest.mark.parametrize(
    "change",
    [
        lambda weight: weight.bool(),
        lambda weight: weight.to(torch.complex64),
        lambda weight: weight.to(torch.float8_e4m3fn),
        lambda weight: weight.to_sparse(),
        lambda weight: torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8),
        lambda weight: weight.to("meta"),
        lambda weight: weight.flatten()[:1].clone().expand(weight.shape),
        lambda weight: weight.flatten()[:1].clone().expand(10**6, 10**6),
    ],
    ids=["bool", "complex", "float8", "sparse", "quantised", "meta", "repeated", "endless"],
)
@pytest.mark.parametrize("name", [PROJECTION, "preprocessor.featurizer.fb"])
def test_tensors_that_are_no_plain_arrays(tmp_path, name, change):
    values, weights = recorded_parts()
    path = write_archive(tmp_path / "odd.nemo", values, weights | {name: change(weights[name])})
    assert f"'{name}' in {path} is not a plain array of numbers" in refusal(path)


def test_whole_numbers_are_no_weights(tmp_path):
    values, weights = recorded_parts()
    path = write_archive(tmp_path / "whole.nemo", values, weights | {PROJECTION: weights[PROJECTION].long()})
    assert f"they have integers for '{PROJECTION}'" in refusal(path)


def test_weights_beyond_float32_are_not_finite(tmp_path):
    values, weights = recorded_parts()
    large = weights[PROJECTION].double() * 1e300
    path = write_archive(tmp_path / "large.nemo", values, weights | {PROJECTION: large})
    assert "not finite (head.input.weight)" in refusal(path)


def described(path: Path, text: str) -> Path:
    """Write an archive with valid weights, whose valid configuration is preceded by ``text``."""
    values, weights = recorded_parts()
    description = text.encode() + b"\n" + yaml.safe_dump(values).encode()
    return write_tar(path, {"model_config.yaml": description, "model_weights.ckpt": pickled(weights)})


def tenfold(first: str, next_one: str) -> str:
    """Return YAML of nine lines, each of which repeats the one before ten times (a "billion laughs" attack)."""
    return "\n".join([first, *(next_one.format(n=n, ten=",".join([f"*a{n - 1}"] * 10)) for n in range(1, 10))])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (tenfold("a0: &a0 [1]", "a{n}: &a{n} [{ten}]"), "contains an alias"),
        (tenfold("a0: &a0 {x: 1}", "a{n}: &a{n} {{<<: [{ten}]}}"), "contains an alias"),
        ("deep: " + 5000 * "[", "recursion"),
        ("date: 2020-99-99", "month"),
        ("number: !!int x", "invalid literal"),
        ("number: " + 5000 * "9", "digits"),
        ("time: !!timestamp never", "is not valid YAML"),
        ("# " + 2**20 * "x", "is too large for the config of a model: it has 10"),
    ],
    ids=["lists", "merges", "deep", "date", "word", "digits", "time", "long"],
)
def test_a_description_that_is_made_to_be_expanded_or_to_break_its_reader(tmp_path, text, says):
    assert says in refusal(described(tmp_path / "odd.nemo", text))


def test_a_setting_with_too_many_digits_to_be_shown(tmp_path):
    values, weights = recorded_parts()
    description = yaml.safe_dump(values).replace("n_layers: 2", "n_layers: 0x" + 9000 * "f")
    members = {"model_config.yaml": description.encode(), "model_weights.ckpt": pickled(weights)}
    assert "holds a model that is not supported" in refusal(write_tar(tmp_path / "digits.nemo", members))


def test_a_tar_that_was_packed_to_nearly_nothing(tmp_path):
    member = tarfile.TarInfo("silence.bin")
    member.size = 2**26
    (tmp_path / "packed.nemo").write_bytes(gzip.compress(member.tobuf() + bytes(2**26 + 1024)))
    assert "unpacks to 100 times its size or more" in refusal(tmp_path / "packed.nemo")


def test_a_name_that_was_packed_to_nearly_nothing(tmp_path):
    name = tarfile.TarInfo("././@LongLink")  # the name of the next member, which tarfile reads at once
    name.type = tarfile.GNUTYPE_LONGNAME
    name.size = 2**26
    (tmp_path / "packed.nemo").write_bytes(gzip.compress(name.tobuf() + bytes(2**26 + 1024)))
    tracemalloc.start()
    try:
        assert "unpacks to 100 times its size or more" in refusal(tmp_path / "packed.nemo")
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def test_a_member_that_is_said_to_have_large_holes(tmp_path):
    member = tarfile.TarInfo("holes.bin")
    member.type = tarfile.GNUTYPE_SPARSE
    head = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    head[483:495] = b"%011o\0" % 2**32  # its size with them
    head[148:156] = 8 * b" "
    head[148:156] = b"%06o\0 " % sum(head)
    (tmp_path / "holes.nemo").write_bytes(head + bytes(1024))
    assert "unpacks to 100 times its size or more" in refusal(tmp_path / "holes.nemo")


@pytest.mark.parametrize("sparse", [{"GNU.sparse.size": "x"}, {"GNU.sparse.map": "0,x", "GNU.sparse.size": "1"}])
def test_holes_that_are_no_numbers(tmp_path, sparse):
    member = tarfile.TarInfo("holes.bin")
    member.pax_headers = sparse
    (tmp_path / "holes.nemo").write_bytes(member.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    assert "is damaged" in refusal(tmp_path / "holes.nemo")


def test_names_that_follow_names_without_end(tmp_path):
    name = tarfile.TarInfo("././@LongLink")
    name.type = tarfile.GNUTYPE_LONGNAME
    name.size = 1
    (tmp_path / "names.nemo").write_bytes(2000 * (name.tobuf() + bytes(512)))
    assert "is damaged" in refusal(tmp_path / "names.nemo")


def test_weights_that_were_packed_in_their_zip(tmp_path):
    values, weights = recorded_parts()
    packed = io.BytesIO()
    stored = zipfile.ZipFile(io.BytesIO(pickled(weights | {"more": torch.zeros(10**7)})))
    with stored, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as deflated:
        for part in stored.infolist():
            deflated.writestr(part.filename, stored.read(part))
    members = {"model_config.yaml": yaml.safe_dump(values).encode(), "model_weights.ckpt": packed.getvalue()}
    assert "expands to more than its size" in refusal(write_tar(tmp_path / "packed.nemo", members))


class _Large:
    """What is pickled in a few bytes as a byte array of a given length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __reduce__(self) -> Any:
        return bytearray, (self.length,)


def test_weights_with_a_byte_array_that_is_only_given_as_a_length(tmp_path):
    values, weights = recorded_parts()
    path = write_archive(tmp_path / "long.nemo", values, weights | {"more": _Large(2**28)})
    tracemalloc.start()
    try:
        assert "holds Python objects besides weights" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()


def test_weights_with_tuples_in_tuples_without_end(tmp_path):
    """To hash them as a key overflows the stack, which ends the process: here they are one value, which does not."""
    values, _ = recorded_parts()
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as parts:
        parts.writestr("weights/data.pkl", b"\x80\x02}X\x01\0\0\0a)" + b"\x85" * 60_000 + b"s.")
        parts.writestr("weights/version", b"3\n")
    members = {"model_config.yaml": yaml.safe_dump(values).encode(), "model_weights.ckpt": stored.getvalue()}
    assert "holds Python objects besides weights" in refusal(write_tar(tmp_path / "deep.nemo", members))


def test_weights_in_the_older_form_of_pytorch_before_a_zip(tmp_path):
    values, weights = recorded_parts()
    older = io.BytesIO()
    torch.save(weights, older, _use_new_zipfile_serialization=False)
    members = {
        "model_config.yaml": yaml.safe_dump(values).encode(),
        "model_weights.ckpt": older.getvalue() + pickled(weights),
    }
    assert "it is not a zip" in refusal(write_tar(tmp_path / "older.nemo", members))


def test_weights_of_which_one_byte_has_changed(tmp_path):
    values, weights = recorded_parts()
    content = bytearray(pickled(weights))
    at = content.index(weights[PROJECTION].numpy().tobytes())
    content[at] ^= 1  # a valid number, but another one
    members = {"model_config.yaml": yaml.safe_dump(values).encode(), "model_weights.ckpt": bytes(content)}
    assert "is damaged: the checksum" in refusal(write_tar(tmp_path / "flipped.nemo", members))


@pytest.mark.parametrize("packing", ["bz2", "xz"])
def test_a_packing_that_nemo_does_not_know(tmp_path, packing):
    path = write_archive(tmp_path / f"{packing}.nemo", *recorded_parts(), f"w:{packing}")
    assert "is not a .nemo archive" in refusal(path)


def test_of_two_members_with_one_name_the_later_counts_as_when_they_are_unpacked(tmp_path):
    values, weights = recorded_parts()
    path = write_archive(tmp_path / "twice.nemo", values | {"target": "nemo.Other"}, weights)
    description = yaml.safe_dump(values).encode()
    member = tarfile.TarInfo("./model_config.yaml")
    member.size = len(description)
    with tarfile.open(path, "a") as archive:
        archive.addfile(member, io.BytesIO(description))
    checkpoint.load(path)

"""NeMo's ``.nemo`` archives: a tar of ``model_config.yaml`` and ``model_weights.ckpt``, read without trusting it.

Nothing is extracted to disk, only those two members are read, and the weights are unpickled with ``weights_only=True``:
no code of the archive runs. Nor can a small archive expand to a large one: the expansion of gzip and tar is limited,
the zip of the weights may not expand, their pickle has little besides tensors, and YAML aliases are refused.
"""

import gzip
import pickle
import pickletools
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import torch
import yaml
from torch import Tensor

from sortformer.checkpoint.contents import Checkpoint, build
from sortformer.checkpoint.licences import licence_of
from sortformer.checkpoint.nemo_config import model_config
from sortformer.checkpoint.nemo_keys import front_end, key_table
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError, first_line, refusal
from sortformer.features import LogMel

__all__ = ["CONFIG_MEMBER", "WEIGHTS_MEMBER", "read_nemo"]

CONFIG_MEMBER = "model_config.yaml"
WEIGHTS_MEMBER = "model_weights.ckpt"
_LARGEST_CONFIG_BYTES = 2**20
_LARGEST_EXPANSION = 100
_BLOCK_BYTES = 2**20
_ZIP = b"PK\x03\x04"
_MODULES = ("torch", "collections")  # those of a pickle of tensors
_MOST_TUPLES = 50_000  # a tensor takes about four; twice as many, nested in each other, overflow the stack when hashed


def read_nemo(path: Path) -> Checkpoint:
    """Read one of NeMo's Sortformers: v1, v2 or v2.1.

    Raises:
        InputError: if the file is not such an archive, is damaged or unsafe, or holds a model that is not supported.
    """
    with _archive(path) as members:
        values = _read_config(path, members)
        try:
            config = model_config(values)
        except (ValueError, OverflowError) as error:  # ConfigError, or numbers of thousands of digits
            raise InputError(f"{path} holds a model that is not supported: {first_line(error)}") from error
        weights = _read_weights(path, members)
    table = key_table(config)
    model = build(path, config, weights, table)
    _check_front_end(path, weights, model.features)
    return Checkpoint(model, PostprocessConfig(), licence_of(path.stem, config))


class _Members:
    """The regular files of a tar by name; of duplicates the last, as on extraction."""

    def __init__(self, archive: tarfile.TarFile, path: Path) -> None:
        self.archive = archive
        self.path = path
        self.files: dict[str, tarfile.TarInfo] = {}
        room = _LARGEST_EXPANSION * path.stat().st_size
        for member in archive:
            room -= member.size
            if room < 0:
                raise _too_large(path)
            place = PurePosixPath(member.name)
            if place.is_absolute() or ".." in place.parts:
                raise InputError(f"{path} is not safe to read: its member '{member.name}' points outside the archive")
            if member.isreg():
                self.files[str(place)] = member

    def open(self, name: str) -> tuple[Any, int]:
        """Return a member as a binary file, and its size in bytes; if it is absent, an InputError names it."""
        if name not in self.files:
            inside = [place for place in self.files if place.endswith(f"/{name}")]
            other = f", only {inside[0]!r}: pack the files without their folder" if inside else ""
            raise InputError(f"{self.path} is not a complete .nemo archive: it has no {name}{other}")
        member = self.files[name]
        return self.archive.extractfile(member), member.size


@contextmanager
def _archive(path: Path) -> Iterator[_Members]:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        if magic == _ZIP:
            raise InputError(f"{path} is a zip, as PyTorch writes, not a .nemo archive: use NeMo's save_to()")
        packed = magic.startswith(b"\x1f\x8b")
        if packed:
            _check_expansion(path)
        with tarfile.open(path, "r:gz" if packed else "r:") as archive:  # NeMo uses no other compression
            yield _Members(archive, path)
    except InputError:
        raise
    # Of tarfile itself, the last two: of sparse maps that are not numbers, and of names that follow names without end.
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a .nemo archive (a tar file), or is damaged") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {refusal(error)}") from error


def _check_expansion(path: Path) -> None:
    """Refuse a gzip that expands too far: tarfile reads headers, such as a long name, into memory as a whole."""
    room = _LARGEST_EXPANSION * path.stat().st_size
    with gzip.open(path) as unpacked:
        while block := unpacked.read(_BLOCK_BYTES):
            room -= len(block)
            if room < 0:
                raise _too_large(path)


def _too_large(path: Path) -> InputError:
    return InputError(
        f"{path} is damaged, or not safe to read: it unpacks to {_LARGEST_EXPANSION} times its size or more"
    )


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: they can expand a short file beyond any memory, and NeMo never writes them."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it contains an alias, which is not supported")
        return super().compose_node(parent, index)


def _read_config(path: Path, members: _Members) -> dict[str, Any]:
    file, size = members.open(CONFIG_MEMBER)
    if size > _LARGEST_CONFIG_BYTES:
        raise InputError(f"{CONFIG_MEMBER} in {path} is too large for the config of a model: it has {size} bytes")
    text = file.read()
    try:
        values = yaml.load(text, _PlainLoader)
    except Exception as error:  # an invalid date or number can raise nearly anything
        raise InputError(f"{CONFIG_MEMBER} in {path} is not valid YAML: {first_line(error)}") from error
    if not isinstance(values, dict):
        raise InputError(f"{CONFIG_MEMBER} in {path} is not the config of a model")
    return values


def _read_weights(path: Path, members: _Members) -> dict[str, Tensor]:
    file, size = members.open(WEIGHTS_MEMBER)
    try:
        if file.read(4) != _ZIP:  # torch.load would read another file as its older format, without these checks
            raise InputError(f"{WEIGHTS_MEMBER} in {path} is damaged: it is not a zip as written by torch.save")
        # torch.save stores each part once, uncompressed.
        with zipfile.ZipFile(file) as parts:
            if sum(part.file_size for part in parts.infolist()) > size:
                raise InputError(f"{path} is not safe to read: its {WEIGHTS_MEMBER} expands to more than its size")
            broken = parts.testzip()  # torch.load does not verify checksums
            if broken is not None:
                raise InputError(
                    f"{WEIGHTS_MEMBER} in {path} is damaged: the checksum of its part '{broken}' is wrong; "
                    "download it again"
                )
            _check_pickles(parts)
        file.seek(0)
        weights = torch.load(file, map_location="cpu", weights_only=True)
    except InputError:
        raise
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{WEIGHTS_MEMBER} in {path} holds Python objects besides weights or is damaged; none of it was executed"
        ) from error
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise InputError(f"{WEIGHTS_MEMBER} in {path} is damaged: {first_line(error)}") from error
    if not isinstance(weights, dict) or not all(isinstance(tensor, Tensor) for tensor in weights.values()):
        raise InputError(f"{WEIGHTS_MEMBER} in {path} is not a table of weights")
    return {str(name): tensor for name, tensor in weights.items()}


def _check_pickles(parts: zipfile.ZipFile) -> None:
    """Refuse a pickle that names more than weights need: ``weights_only`` allows ``bytearray``, of any length.

    And one of so many tuples that, nested, they end the process.

    Raises:
        pickle.UnpicklingError: if it does.
    """
    for part in parts.infolist():
        if not part.filename.lower().endswith(".pkl"):
            continue
        tuples = 0
        for code, name, _ in pickletools.genops(parts.read(part)):
            if code.name == "GLOBAL" and str(name).replace(" ", ".").partition(".")[0] not in _MODULES:
                raise pickle.UnpicklingError(f"it names {name}")
            tuples += code.name.startswith("TUPLE")
            if tuples > _MOST_TUPLES:
                raise pickle.UnpicklingError("it has too many tuples")


def _check_front_end(path: Path, weights: dict[str, Tensor], features: LogMel) -> None:
    """Refuse a window or mel filters that differ, at the precision of the file, from those that are used here."""
    for name, own in front_end(features).items():
        theirs = weights.get(name)
        if theirs is None:
            continue
        exact = torch.finfo(theirs.dtype).eps if theirs.is_floating_point() else 0.0
        if theirs.shape != own.shape or not torch.allclose(theirs.float(), own, rtol=exact, atol=1e-6):
            raise InputError(f"{path} computes its features with a different '{name}' from this version")

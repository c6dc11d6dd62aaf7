"""Loading of models from a folder, a ``.nemo`` archive or a Hugging Face id."""

from pathlib import Path

from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.files import read_config
from sortformer.checkpoint.kinds import model_in
from sortformer.checkpoint.licences import remind
from sortformer.checkpoint.native import EMBEDDED, EMBEDDED_NAME, FORMAT, read_native
from sortformer.checkpoint.nemotron import MODEL_TYPE, read_nemotron
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.model import Sortformer

__all__ = ["load", "read"]


def load(source: str | Path) -> tuple[Sortformer, PostprocessConfig]:
    """Return a model, in float32 and evaluation mode, and its post-processing: :func:`read` without the licence.

    Args:
        source: a folder with ``config.json`` and ``model.safetensors`` (ours, or Nemotron 3 as on Hugging Face), a
            ``.nemo`` archive, a folder with one archive and no such model, a Hugging Face id ``owner/name`` or
            ``owner/name@revision``, or "embedded", the model in the package.

    Raises:
        InputError: if there is no such model, a file is absent or damaged, or the model is not supported.

    Warns:
        SortformerWarning: if the licence of the weights forbids commercial use.
    """
    checkpoint = read(source)
    return checkpoint.model, checkpoint.postprocess


def read(source: str | Path) -> Checkpoint:
    """Return a model with its post-processing and its licence; source, errors and warnings as for :func:`load`."""
    checkpoint = _read(source)
    remind(str(source), checkpoint.licence)
    return checkpoint


def _read(source: str | Path) -> Checkpoint:
    path = Path(source)
    if str(source) == EMBEDDED_NAME and not path.exists():
        path = EMBEDDED
    if path.is_dir():
        return _read_folder(path, path.name)
    if path == EMBEDDED:
        raise InputError(
            f"the package lacks the folder of its model, {path}: install it again, or, in a program frozen by "
            "PyInstaller, freeze with --collect-data sortformer"
        )
    if path.suffix in (".safetensors", ".json") and path.is_file():
        raise InputError(f"{path} is one of the two files of a model: give its folder, {path.parent}")
    if path.suffix == ".onnx" and path.is_file():
        raise InputError(f"{path} is for other runtimes (ONNX): give the model that it was exported from")
    if path.is_file():
        return _read_archive(path)
    from sortformer.checkpoint.huggingface import download, parse_id

    model_id = parse_id(str(source))
    if model_id is None:
        raise InputError(
            f"there is no model {path}: give a folder with config.json and model.safetensors, a .nemo file, "
            f"or a Hugging Face id (owner/name); '{EMBEDDED_NAME}' is the one in the package"
        )
    return _read_folder(download(model_id), model_id.name)


def _read_folder(folder: Path, name: str) -> Checkpoint:
    found = model_in(folder)
    if found is None:
        raise _no_model(folder)
    if isinstance(found, Path):
        return _read_archive(found)
    return read_native(folder, found) if found.get("format") == FORMAT else read_nemotron(folder, found, name)


def _no_model(folder: Path) -> InputError:
    """Return the error for a folder that holds no model, several, or one in another format."""
    if archives := sorted(folder.glob("*.nemo")):
        names = " or ".join(archive.name for archive in archives)
        return InputError(f"{folder} holds several models: give one of its files, {names}")
    values = read_config(folder / "config.json")  # if there is none, this says so
    if (folder / "model" / "config.json").is_file():
        return InputError(f"{folder} is the folder of a training run; its model is in {folder / 'model'}")
    found = f", but '{values['model_type']}'" if "model_type" in values else ""
    return InputError(
        f"{folder / 'config.json'} is not the config of a sortformer model: its format is not '{FORMAT}', "
        f"and its model_type is not '{MODEL_TYPE}'{found}"
    )


def _read_archive(path: Path) -> Checkpoint:
    # Imported late: only such an archive needs PyYAML and tarfile.
    from sortformer.checkpoint.nemo import read_nemo

    return read_nemo(path)

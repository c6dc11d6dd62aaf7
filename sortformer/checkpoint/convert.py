"""Conversion of checkpoints from one format to another."""

from pathlib import Path

from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.loading import read
from sortformer.checkpoint.native import save
from sortformer.config.checks import switch
from sortformer.errors import InputError, refusal

__all__ = ["convert"]

_OTHERS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")


def convert(source: str | Path, out: str | Path, *, overwrite: bool = False) -> Checkpoint:
    """Write the model of ``source``, anything that ``load`` reads, as ``.nemo``, ``.onnx``, or a folder of our own.

    The model computes the same in all formats. Returns everything that was read; a ``.nemo`` archive cannot store the
    post-processing, the licence and the labelling, an ONNX file has them as metadata.

    Args:
        out: a file name that ends in ``.nemo`` or ``.onnx``, or a folder. Missing folders are created.
        overwrite: replace an existing model.

    Raises:
        InputError: if the source cannot be read; if ``out`` cannot be written, exists without ``overwrite``, is a file
            instead of a folder or vice versa, or has the suffix of another format; if ``overwrite`` is neither True nor
            False; or if the format cannot express the model or needs a package that is missing.
    """
    out, overwrite = Path(out), switch("overwrite", overwrite)
    folder = out.suffix not in (".nemo", ".onnx")
    if out.suffix in _OTHERS:
        raise InputError(f"cannot write a model as {out.suffix}: end {out} in .nemo or .onnx, or give a folder")
    if out.exists() and out.is_dir() != folder:
        raise InputError(f"{out} is a {'file' if folder else 'folder'}: give another name")
    if out.exists() and not overwrite and not (folder and not any(out.iterdir())):
        raise InputError(f"{out} exists already; give another name, or replace it with --overwrite")
    checkpoint = read(source)
    try:
        if folder:
            save(out, checkpoint.model, checkpoint.postprocess, licence=checkpoint.licence)
        elif out.suffix == ".onnx":  # imported late, as below: each has dependencies of its own
            from sortformer.checkpoint.onnx_export import write_onnx

            write_onnx(out, checkpoint)
        else:
            from sortformer.checkpoint.nemo_export import write_nemo

            write_nemo(out, checkpoint.model)
    except OSError as error:
        raise InputError(f"cannot write {out}: {refusal(error)}") from error
    return checkpoint

"""From one format to another."""

from pathlib import Path

from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.licences import remind
from sortformer.checkpoint.loading import read
from sortformer.checkpoint.native import save
from sortformer.errors import InputError

__all__ = ["convert"]


def convert(source: str | Path, out: str | Path) -> Checkpoint:
    """Write the model of ``source``, anything that loads, as a ``.nemo`` archive or as a folder of our own.

    What it computes stays the same. Returned is all that was read, of which a ``.nemo`` has no place for the
    post-processing, the licence and the labelling.

    Args:
        out: a name that ends in ``.nemo``, or a folder; neither may exist already. Folders are made if need be.

    Raises:
        InputError: if the source cannot be read, ``out`` exists, or NeMo cannot express the model.
    """
    out = Path(out)
    if out.exists() and not (out.is_dir() and out.suffix != ".nemo" and not any(out.iterdir())):
        raise InputError(f"{out} exists already; give another name, or move it away")
    checkpoint = read(source)
    remind(str(source), checkpoint.licence)
    if out.suffix == ".nemo":
        # NeMo's format has its own dependencies.
        from sortformer.checkpoint.nemo_export import write_nemo

        write_nemo(out, checkpoint.model)
    else:
        save(out, checkpoint.model, checkpoint.postprocess, licence=checkpoint.licence)
    return checkpoint

"""``sortformer convert``: a model from one format to another."""

from pathlib import Path
from typing import Annotated

import typer

from sortformer.cli.console import say
from sortformer.cli.options import as_options
from sortformer.config.postprocess import PostprocessConfig

__all__ = ["convert"]


def convert(
    source: Annotated[str, typer.Argument(metavar="MODEL", help="A folder, a .nemo file or a Hugging Face id.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder, or a name that ends in .nemo.")],
) -> None:
    """Write a model as a folder of our own, or as .nemo for NeMo.

    What the network computes stays the same. A .nemo has no place for post-processing of its own, which is said
    instead, as options. What NeMo cannot express is refused with the reason.
    """
    from sortformer.checkpoint import convert as run

    settings = run(source, out).postprocess
    if out.suffix == ".nemo" and settings != PostprocessConfig():
        say(f"note: a .nemo has no place for the model's post-processing: use it with {as_options(settings)}")
    typer.echo(str(out))

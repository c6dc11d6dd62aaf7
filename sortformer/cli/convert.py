"""``sortformer convert``: a model from one format to another."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["convert"]


def convert(
    source: Annotated[str, typer.Argument(metavar="MODEL", help="A folder, a .nemo file or a Hugging Face id.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder, or a name that ends in .nemo.")],
) -> None:
    """Write a model as a folder of our own, or as .nemo for NeMo.

    Its output stays the same. What NeMo cannot express is refused with the reason.
    """
    from sortformer.checkpoint import convert as run

    run(source, out)
    typer.echo(str(out))

"""``sortformer average``: one model out of several states of a run."""

from pathlib import Path
from typing import Annotated

import typer

from sortformer.errors import InputError

__all__ = ["average"]


def average(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders, .nemo files or Hugging Face ids.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Folder for the mean of them.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model that is there.")] = False,
) -> None:
    """Average the weights of models from one run.

    Their configs must be the same. Post-processing is kept where all agree on it; otherwise tune it anew.
    """
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists already; use --overwrite, or another name with -o")

    from sortformer.average import average as run

    run(models, out)
    typer.echo(str(out))

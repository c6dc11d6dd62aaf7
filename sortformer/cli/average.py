"""``sortformer average``: checkpoint averaging."""

from pathlib import Path
from typing import Annotated

import typer

from sortformer.cli.results import check_out

__all__ = ["average"]


def average(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders, .nemo files or Hugging Face ids.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Folder for the averaged model.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing model.")] = False,
) -> None:
    """Average the weights of models from one run.

    Their configs must be the same. Post-processing settings that differ are reset to their defaults: tune them again.
    """
    check_out(out, overwrite, folder=True)

    from sortformer.average import average as run

    run(models, out)
    typer.echo(str(out))

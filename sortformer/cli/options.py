"""Options that several commands share."""

from typing import Annotated

import typer

__all__ = ["Device", "Model"]

Model = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|ID", help="A folder, a .nemo file or a Hugging Face id; the package's own model if not given."
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]

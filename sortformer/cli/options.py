"""Options that several commands share."""

from typing import Annotated

import typer

__all__ = ["Device", "Model"]

Model = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="A model's folder; the one inside the package if not given.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]

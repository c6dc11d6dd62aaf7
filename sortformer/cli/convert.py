"""``sortformer convert``: conversion of models between formats."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sortformer.cli.console import say
from sortformer.cli.settings import as_options
from sortformer.config.postprocess import PostprocessConfig

__all__ = ["convert"]


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Folder, .nemo file, Hugging Face id, or 'embedded': the model in the package."
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder, or file name ending in .nemo or .onnx.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing model.")] = False,
) -> None:
    """Convert a model to a folder, .nemo or .onnx.

    The network's output stays the same. A .nemo cannot store post-processing, nor how a model that is not NVIDIA's
    labels frames and processes files: notes say what is lost. An .onnx is the network of one streaming step for other
    runtimes, and needs the extra [onnx]. A model that the format cannot express is rejected with the reason.
    """
    from sortformer.checkpoint import convert as run
    from sortformer.config.presets import streams_files

    if out.suffix == ".onnx":
        say("note: tracing the network takes a minute or more")
    held = run(source, out, overwrite=overwrite)
    config, settings = held.model.config, held.postprocess
    if out.suffix == ".nemo":
        if settings != PostprocessConfig():
            say(f"note: a .nemo cannot store the model's post-processing: use it with {as_options(settings)}")
        nemo = replace(config, labelling="nemo")
        if nemo != config:
            say("note: a .nemo cannot store how frames were labelled in training: its readers assume NeMo's labels")
        if streams_files(nemo) != streams_files(config):
            say("note: as a .nemo, the model streams files, which it now processes whole: use it with --preset offline")
    typer.echo(str(out))

"""``sortformer plot``: a picture of one recording."""

from pathlib import Path
from typing import Annotated

import typer

from sortformer.annotation import Turns
from sortformer.cli.console import usage_errors
from sortformer.cli.options import Channel, Clustering, Device, Model
from sortformer.cli.results import check_out
from sortformer.cli.settings import loaded
from sortformer.errors import InputError, listed
from sortformer.evaluate import truth_in
from sortformer.formats.names import in_unicode, without_white_space
from sortformer.formats.write import write_bytes

__all__ = ["plot"]


def plot(
    recording: Annotated[Path, typer.Argument(metavar="FILE", help="The recording.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Picture as png, svg, pdf or jpg (default: the recording's name, .png)."
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="FILE|DIR", help="Reference turns to compare with, in any format that score reads."),
    ] = None,
    model: Model = None,
    device: Device = "auto",
    channel: Channel = None,
    preset: Annotated[str | None, typer.Option(help="Process as a stream at this latency: 30s, 10s, ...")] = None,
    clustering: Clustering = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing picture.")] = False,
) -> None:
    """Plot probabilities, turns, reference and errors."""
    name = in_unicode(recording.stem)
    target = out or Path(f"{name}.png")
    check_out(target, overwrite)
    known = None if reference is None else _turns_of(name, reference)

    from sortformer.plot import FORMATS, figure, image

    format = target.suffix.removeprefix(".").lower()
    with usage_errors():
        if format not in FORMATS:
            raise InputError(f"a picture cannot be written as {target.name}: end its name in .{', .'.join(FORMATS)}")
    diarizer = loaded(model, device, preset, clustering)
    found = diarizer.probabilities(recording, channel=channel, preset=preset)
    result = found.turns(diarizer.postprocess)
    write_bytes(target, image(figure(found, result, known), format), overwrite=overwrite)
    typer.echo(in_unicode(str(target)))


def _turns_of(name: str, reference: Path) -> Turns:
    id = without_white_space(name)
    turns = truth_in(reference).turns or {id: ()}
    if id not in turns:
        raise InputError(f"{reference} has turns of {listed([*turns])}: not of {id!r}")
    return turns[id]

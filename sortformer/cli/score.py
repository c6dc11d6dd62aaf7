"""``sortformer score``: error rates of hypotheses against references."""

from pathlib import Path
from typing import Annotated

import typer

from sortformer import evaluate
from sortformer.cli.console import say, usage_errors
from sortformer.cli.options import ProtocolName
from sortformer.errors import InputError
from sortformer.formats.gather import TURN_SUFFIXES
from sortformer.manifests import is_manifest
from sortformer.metrics.protocol import changed, protocol_named

__all__ = ["score"]

_TABLES = {
    "text": evaluate.as_text,
    "markdown": evaluate.as_markdown,
    "json": lambda report, _: evaluate.as_json(report),
    "csv": lambda report, _: evaluate.as_csv(report),
}


def score(
    reference: Annotated[
        Path,
        typer.Argument(
            metavar="REF",
            help=f"Reference: {', '.join(TURN_SUFFIXES)}, a folder of these, or a manifest.",
        ),
    ],
    hypothesis: Annotated[
        Path, typer.Argument(metavar="HYP", help="Hypothesis: such a file, a folder of them, or - for RTTM from stdin.")
    ],
    uem: Annotated[
        Path | None, typer.Option(metavar="FILE", help="UEM file or folder: score only its recordings and regions.")
    ] = None,
    protocol: ProtocolName = "full",
    collar: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Collar on each side of a boundary, instead of the protocol's (pyannote's is both sides together).",
        ),
    ] = None,
    skip_overlap: Annotated[
        bool | None,
        typer.Option(
            "--skip-overlap/--score-overlap",
            help="Exclude or include overlap, instead of the protocol's choice.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="HYP", help="Another hypothesis: print the gain over it, with its 95 % interval."),
    ] = None,
    table: Annotated[str, typer.Option("--format", "-f", metavar="|".join(_TABLES), help="Output format.")] = "text",
    breakdown: Annotated[
        bool, typer.Option("--breakdown", help="Also by number of speakers, and by number of simultaneous speakers.")
    ] = False,
    errors: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the errors to this folder: pages to listen to them, and Audacity labels."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files in --errors.")] = False,
) -> None:
    """Score turns against references: error rates and their parts.

    DER with miss, false alarm and confusion, JER and speaker counts: one line per recording, and the total with its
    95 % interval by a bootstrap over recordings. A recording without reference or hypothesis is an error, and so is a
    pipe without turns; an empty file means that nobody speaks. JSON is SegLST, or the output of diarize.
    """
    with usage_errors():
        chosen = changed(protocol_named(protocol), collar, skip_overlap)
        if table not in _TABLES:
            raise InputError(f"there is no format {table!r}; choose one of {', '.join(_TABLES)}")
        if overwrite and errors is None:
            raise InputError("--overwrite replaces files in the folder of --errors: give that, too")
    said = evaluate.STDIN if hypothesis == Path("-") else hypothesis
    report = evaluate.score(
        reference, said, uem=uem, protocol=chosen, baseline=baseline, errors=errors, overwrite=overwrite
    )
    if uem is None and (unused := _beside(reference)):
        say(f"note: scored whole recordings, though there is a UEM: give --uem {unused} to score only its regions")
    typer.echo(_TABLES[table](report, breakdown), nl=False)


def _beside(reference: Path) -> Path | None:
    """Return the UEM file next to a reference, or its folder if that has any. A manifest names its own."""
    if reference.is_dir():
        return reference if any(reference.glob("*.uem")) else None
    uem = reference.with_suffix(".uem")
    return uem if uem.is_file() and not is_manifest(reference) else None

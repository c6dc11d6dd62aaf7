"""``sortformer doctor``: self-diagnosis."""

import typer

from sortformer.cli.options import Device, Model

__all__ = ["doctor"]


def doctor(model: Model = None, device: Device = "auto") -> None:
    """Check versions, device, decoders and weights; run a self-test."""
    from sortformer.doctor import examine

    good = True
    for finding in examine(model, device):
        typer.echo(f"{'ok  ' if finding.good else 'FAIL'}  {finding.name}: {finding.detail}")
        good &= finding.good
    raise typer.Exit(0 if good else 1)

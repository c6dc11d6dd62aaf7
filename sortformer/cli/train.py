"""``sortformer train``: from a recipe to a model."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sortformer.cli.console import bar, say
from sortformer.cli.interrupt import INTERRUPTED, interrupts
from sortformer.cli.options import Device
from sortformer.errors import Cancelled

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["train"]


def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="What to train, on what.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="The run's folder; runs/NAME if not given.")
    ] = None,
    device: Device = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train a model from a recipe, or go on with a run.

    A run goes on where its folder has a state. The folder gets model/ (averaged weights, for --model), log.jsonl and
    state.pt. On several GPUs: torchrun --nproc-per-node 4 -m sortformer train RECIPE.toml -o DIR
    """
    import torch

    from sortformer.config.train import TrainConfig
    from sortformer.device import device_named
    from sortformer.train import train as run

    # Moments that fade to denormal numbers would slow a CPU down many times. Threads inherit this as they start.
    torch.set_flush_denormal(True)
    config = TrainConfig.read(recipe)
    folder = out or Path("runs") / (recipe.resolve().parent.name if recipe.stem == "recipe" else recipe.stem)
    place = str(device_named(device))
    lead = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun has started
    try:
        with bar(quiet or not lead, "{task.fields[loss]}", "{task.fields[der]}") as shown, interrupts() as interrupt:
            task = shown.add_task(folder.name, total=config.steps, loss="", der="")
            try:
                model = run(config, folder, device=place, report=_Reporter(shown, task, quiet).report)
            except Exception:
                if not interrupt.pressed:
                    raise
                # The signal went to the workers, too, and torch complains of them before, or while it ends.
                sys.unraisablehook = lambda _: None
                raise KeyboardInterrupt from None
    except KeyboardInterrupt:
        if lead:
            say(f"interrupted: the same command goes on from the last state in {folder}")
        raise typer.Exit(INTERRUPTED) from None
    except Cancelled:  # the process that failed says why
        raise typer.Exit(1) from None
    if lead:
        typer.echo(str(model))


class _Reporter:
    """Shows the lines of a run's log: on the bar, or where there is none, one line an evaluation."""

    def __init__(self, shown: Progress, task: TaskID, quiet: bool) -> None:
        self.shown, self.task = shown, task
        self.lines = shown.disable and not quiet
        self.loss = math.nan

    def report(self, line: dict[str, float]) -> None:
        """Take one line of the log."""
        step = int(line["step"])
        if "loss" in line:
            if math.isnan(self.loss):
                # A run that goes on begins in the middle: the steps before must not count as quick ones.
                self.shown.reset(self.task, completed=step - 1)
                self.loss = line["loss"]
            self.loss = 0.9 * self.loss + 0.1 * line["loss"]
            self.shown.update(self.task, completed=step, loss=f"loss {self.loss:.3f}")
        if "der" in line:
            rates = f"dev DER {100 * line['der']:.1f} %"
            self.shown.update(self.task, der=rates)
            if self.lines:
                say(f"step {step}: loss {self.loss:.3f}, {rates}")

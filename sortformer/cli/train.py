"""``sortformer train``: training from a recipe."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from sortformer.cli.console import bar, say
from sortformer.cli.interrupt import INTERRUPTED, interrupts
from sortformer.cli.options import Device
from sortformer.errors import Cancelled

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["train"]


def train(
    recipe: Annotated[
        Path, typer.Argument(metavar="RECIPE.toml", help="Recipe with the model, the data and the schedule.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder of the run (default: runs/NAME).")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as loss.sort_weight=1; repeatable."),
    ] = None,
    device: Device = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train a model from a recipe, or resume a run.

    A run is resumed if its folder has a state. The folder gets model/ (averaged weights, for --model), best/ (those
    with the lowest dev DER), log.jsonl and state.pt. On several GPUs:
    torchrun --nproc-per-node 4 -m sortformer train RECIPE.toml -o DIR
    """
    import torch

    from sortformer.config.train import TrainConfig
    from sortformer.train import train as run
    from sortformer.train.keeper import STATE

    # Optimiser moments that decay to denormal numbers slow down CPUs many times. Threads inherit this setting.
    torch.set_flush_denormal(True)
    config = TrainConfig.read(recipe, settings or ())
    folder = out or Path("runs") / (recipe.resolve().parent.name if recipe.stem == "recipe" else recipe.stem)
    lead = os.environ.get("RANK", "0") == "0"  # the first of torchrun's processes
    done = 0
    note = "stopping after this step, which is saved; Ctrl-C again: stop now, without saving" if lead else ""
    try:
        with bar(quiet or not lead, "{task.fields[loss]}", "{task.fields[der]}") as shown, interrupts() as interrupt:
            task = shown.add_task(folder.name, total=config.steps, loss="", der="")

            def stop(steps: int) -> bool:
                nonlocal done
                done = steps
                interrupt.heed(note)
                return interrupt.pressed

            try:
                model = run(config, folder, device=device, stop=stop, report=_Reporter(shown, task, quiet).report)
            except RuntimeError:
                if not interrupt.pressed:
                    raise
                raise KeyboardInterrupt from None  # torch fails because the other processes, too, got the signal
    except KeyboardInterrupt:
        _interrupted(f"from the last state in {folder}" if (folder / STATE).exists() else "from the start", lead)
    except Cancelled:  # the failed process reports the reason
        raise typer.Exit(1) from None
    if done < config.steps:
        _interrupted(f"from step {done}" if done else "from the start", lead)
    if lead:
        typer.echo(str(model))


def _interrupted(whence: str, lead: bool) -> NoReturn:
    if lead:
        say(f"interrupted: the same command continues {whence}")
    raise typer.Exit(INTERRUPTED)


class _Reporter:
    """Display of a run's log: on the bar or, if it is hidden, one line per evaluation."""

    def __init__(self, shown: Progress, task: TaskID, quiet: bool) -> None:
        self.shown, self.task = shown, task
        self.lines = shown.disable and not quiet
        self.sum = self.weight = 0.0  # exponentially weighted losses

    def report(self, line: dict[str, float]) -> None:
        """Show one line of the log."""
        step = int(line["step"])
        if "loss" in line:
            if not self.weight:
                # A resumed run starts in the middle: earlier steps must not count for the estimated speed.
                self.shown.reset(self.task, completed=step - 1)
            if math.isfinite(line["loss"]):  # batches with a non-finite loss are skipped
                self.sum, self.weight = 0.9 * self.sum + line["loss"], 0.9 * self.weight + 1
            self.shown.update(self.task, completed=step, loss=self.loss)
        if "der" in line:
            rates = f"dev DER {100 * line['der']:.1f} %"
            self.shown.update(self.task, der=rates)
            if self.lines:
                say(f"step {step}: {', '.join(filter(None, (self.loss, rates)))}")

    @property
    def loss(self) -> str:
        return f"loss {self.sum / self.weight:.3f}" if self.weight else ""

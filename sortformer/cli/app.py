"""The command line application, and its handling of errors."""

import sys
import warnings
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import sortformer
from sortformer.cli.average import average
from sortformer.cli.console import discard_unsaid, say, sentence, show_warning, unforeseen
from sortformer.cli.convert import convert
from sortformer.cli.diarize import diarize
from sortformer.cli.doctor import doctor
from sortformer.cli.export import export
from sortformer.cli.interrupt import INTERRUPTED, unwrapped
from sortformer.cli.manifest import manifest
from sortformer.cli.mechanisms import mechanisms
from sortformer.cli.plot import plot
from sortformer.cli.score import score
from sortformer.cli.serve import serve
from sortformer.cli.stream import stream
from sortformer.cli.train import train
from sortformer.cli.tune import tune
from sortformer.errors import SortformerError

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    """The group of all commands: it refuses empty arguments and ``-o -``, and reports interrupts."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        for before, argument in pairwise(["sortformer", *args]):
            if not argument or (argument.startswith("--") and argument.endswith("=")):
                raise typer.BadParameter(f"the value after {argument or before!r} is empty: is a shell variable unset?")
            if (before in ("-o", "--out") and argument == "-") or argument in ("-o-", "--out=-"):
                raise typer.BadParameter("-o takes a file or a folder, not -: without -o, results go to stdout")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:
        try:
            with unwrapped():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted: nothing more was written")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="sortformer",
    cls=_Commands,
    help="Who spoke when: speaker diarization with SortFormer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (diarize, stream, serve, export, score, plot, train, tune, average, convert, mechanisms, doctor):
    app.command()(command)
app.add_typer(manifest)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sortformer {sortformer.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with 0, 1 (an error, some recordings failed), 2 (usage) or 130 (interrupted)."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # one place in the code may warn of several recordings
        warnings.showwarning = show_warning
        try:
            app(arguments, prog_name="sortformer")
        except (SortformerError, OSError) as error:
            say(f"error: {sentence(error)}")
        except Exception as error:
            say(f"error: {unforeseen(error)}")
        finally:
            discard_unsaid()
    sys.exit(1)

"""``sortformer mechanisms``: the available attention cores, memories, positions and blocks."""

import sys
from typing import Annotated

import typer

__all__ = ["mechanisms"]


def mechanisms(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, as in docs/mechanisms.md.")] = False,
) -> None:
    """List the building blocks of layers.

    Attention cores, memories, positions and blocks: function, cost, compatibility and papers.
    """
    from sortformer.config.mechanisms import ABSENT, BLOCKS, CORES, MEMORIES, POSITIONS

    show = _markdown if markdown else _print
    cores = [
        (
            facts.name,
            facts.what,
            facts.cost,
            "yes" if facts.causal else "no",
            facts.streaming,
            ", ".join(facts.positions),
            facts.paper,
        )
        for facts in CORES.values()
    ]
    show(("core", "what", "cost", "causal", "streaming", "positions", "paper"), cores)
    show(
        ("memory", "what", "cost", "needs a core that streams by memory", "paper"),
        [
            (facts.name, facts.what, facts.cost, "yes" if facts.extra_frames else "no", facts.paper)
            for facts in MEMORIES.values()
        ],
    )
    show(
        ("position", "what", "cost", "how", "paper"),
        [(facts.name, facts.what, facts.cost, facts.how or "", facts.paper) for facts in POSITIONS.values()],
    )
    show(
        ("block", "what", "cost", "setting", "paper"),
        [(facts.name, facts.what, facts.cost, facts.setting, facts.paper) for facts in BLOCKS.values()],
    )
    show(("not here", "because"), list(ABSENT.items()))


def _print(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    if sys.stdout.isatty():
        _fit(head, rows)
        return
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, tuple("-" * width for width in widths), *rows):
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    typer.echo("")


def _fit(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table with its cells wrapped to the width of the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column, name in enumerate(head):
        table.add_column(name, overflow="fold", no_wrap=column == 0)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table, "")


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    typer.echo("")
    for row in (head, ("---",) * len(head), *((f"`{name}`", *rest) for name, *rest in rows)):
        typer.echo(f"| {' | '.join(row)} |")

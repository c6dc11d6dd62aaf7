"""``sortformer mechanisms``: what a layer can attend with, and what can be done to its block."""

import typer

__all__ = ["mechanisms"]


def mechanisms() -> None:
    """List what layers can be made of.

    Attention cores, memories, positions and blocks: what they do, cost and fit, and who published them.
    """
    from sortformer.config.mechanisms import ABSENT, BLOCKS, CORES, MEMORIES, POSITIONS

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
    _print(("core", "what", "cost", "causal", "streaming", "positions", "paper"), cores)
    _print(
        ("memory", "what", "cost", "needs a core that streams by memory", "paper"),
        [
            (facts.name, facts.what, facts.cost, "yes" if facts.extra_frames else "no", facts.paper)
            for facts in MEMORIES.values()
        ],
    )
    _print(
        ("position", "what", "cost", "how", "paper"),
        [(facts.name, facts.what, facts.cost, facts.how or "", facts.paper) for facts in POSITIONS.values()],
    )
    _print(
        ("block", "what", "cost", "setting", "paper"),
        [(facts.name, facts.what, facts.cost, facts.setting, facts.paper) for facts in BLOCKS.values()],
    )
    _print(("not here", "because"), list(ABSENT.items()))


def _print(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, tuple("-" * width for width in widths), *rows):
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    typer.echo("")

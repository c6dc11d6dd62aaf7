"""Tabulate and plot the results of ``claims.py`` so far: python summary.py OUT [--plot reentry.svg]

Intervals (95 %) come from 2,000 draws of conversations, or trios of voices, and of seeds, the same for both sides of a
difference. With three seeds they are somewhat too narrow: trust only differences whose interval is far from zero.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mechanisms import STREAMED, TWINS, WHOLE
from reentry import GAPS, GAPS_S

DRAWS = 2000
PAIRS = {
    "whole": TWINS,
    "streamed": (
        ("compressive performer conv", "performer"),
        ("compressive performer conv", "compressive conv"),
        ("compressive performer autoencoder", "performer"),
        ("compressive performer autoencoder", "compressive autoencoder"),
        ("compressive conv", "compressive autoencoder"),
        ("compressive performer conv", "compressive performer autoencoder"),
        ("compressive conv", "xl"),
        *((name, "chunk alone") for name in STREAMED if name != "chunk alone"),
    ),
}
COMPARED = ("loss", "wrong", "wrong, away")
FORMS = {"loss": ".0f", "wrong": ".1f", "wrong, away": ".1f"}
COLOURS = ("#999999", "#56b4e9", "#0072b2", "#5e3c99", "#e69f00", "#d55e00", "#cc79a7", "#009e73", "#8c6d31", "#000000")

MEASURES = {
    "loss": ("loss", "conversations", 1000.0),
    "wrong": ("wrong", "spoken", 100.0),
    "wrong, away": ("wrong_away", "away", 100.0),
}
"""Numerator, denominator and scale of each measure: thousandths of a nat, or percent."""

Draw = tuple[np.ndarray, np.ndarray]
"""Indices of seeds (n, S) and of conversations (n, C), for n draws."""

Value = Callable[[Draw], np.ndarray]
"""Returns a number (n,) for each draw."""


@dataclass(slots=True)
class Mechanism:
    """The results of one mechanism, by seed."""

    seeds: dict[int, dict[str, Any]] = field(default_factory=dict)

    def rate(self, seeds: Sequence[int], measure: str, part: str | None = None) -> Value:
        """Return one of ``MEASURES`` as a function of the draws."""
        lines = [self.seeds[seed] if part is None else self.seeds[seed][part] for seed in seeds]
        top, bottom, scale = MEASURES[measure]
        above, below = (np.array([line[name] for line in lines]) for name in (top, bottom))
        return lambda draw: (
            scale * _picked(above, draw).sum(axis=(1, 2)) / np.maximum(_picked(below, draw).sum(axis=(1, 2)), 1)
        )

    def known(self, seeds: Sequence[int], gap: str, gap_s: int) -> Value:
        """Return the mean of slots kept and slots not lost, in percent, as a function of the draws."""
        kept, lost = (
            np.array([self.seeds[seed]["probe"][gap][name][str(gap_s)] for seed in seeds]) for name in ("kept", "lost")
        )
        right = (kept + 1.0 - lost) / 2
        return lambda draw: 100 * _picked(right, draw).mean(axis=(1, 2))

    def share(self, gap: str, gap_s: int, name: str) -> float:
        """Return the share of slots that were kept, or lost, in percent."""
        return 100 * float(np.mean([line["probe"][gap][name][str(gap_s)] for line in self.seeds.values()]))

    def least(self, name: str, of: float = 1.0) -> float:
        """Return the minimum of a cost over seeds, as other work on the machine only adds to it."""
        return float(min(line[name] for line in self.seeds.values())) / of


def load(folder: Path) -> dict[str, dict[str, Mechanism]]:
    """Return the mechanisms of each group."""
    found: dict[str, dict[str, Mechanism]] = {}
    for line in map(json.loads, (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()):
        found.setdefault(line["group"], {}).setdefault(line["mechanism"], Mechanism()).seeds[line["seed"]] = line
    return found


def whole(value: Value, seeds: int, items: int) -> float:
    """Return the value without resampling."""
    return float(value((np.arange(seeds)[None], np.arange(items)[None]))[0])


def interval(value: Value, seeds: int, items: int) -> tuple[float, float, float]:
    """Return the value without resampling, and the bounds of its interval."""
    rng = np.random.default_rng(0)
    drawn = value((rng.integers(seeds, size=(DRAWS, seeds)), rng.integers(items, size=(DRAWS, items))))
    low, high = np.percentile(drawn, (2.5, 97.5))
    return whole(value, seeds, items), float(low), float(high)


def _picked(table: np.ndarray, draw: Draw) -> np.ndarray:
    """Return the draws (n, S, C) of a table (S, C)."""
    return table[draw[0][:, :, None], draw[1][:, None]]


def report(folder: Path) -> str:
    """Return all tables with results."""
    found = load(folder)
    lines = ["| | wrong, % | wrong, away |", "|---|---:|---:|"]
    for name, mechanism in found["reference"].items():
        items = len(mechanism.seeds[0]["spoken"])
        shown = [whole(mechanism.rate([0], measure), 1, items) for measure in list(MEASURES)[1:]]
        lines.append(_row(name, *(f"{value:.1f}" for value in shown)))
    for group, order in (("whole", WHOLE), ("streamed", STREAMED)):
        mechanisms = {name: found[group][name] for name in order if name in found.get(group, {})}
        if mechanisms:
            lines += ["", *_costs(mechanisms), ""]
            lines += _differences(mechanisms, PAIRS[group])
    if "streamed" in found:
        mechanisms = {name: found["streamed"][name] for name in STREAMED if name in found["streamed"]}
        for gap in GAPS:
            lines += ["", *_returns(mechanisms, gap)]
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _costs(mechanisms: dict[str, Mechanism]) -> Iterator[str]:
    streamed = all("probe" in line for mechanism in mechanisms.values() for line in mechanism.seeds.values())
    more = ("numbers in the state", "probe, s") if streamed else ()
    head = ("", "seeds", "loss at the swap", *COMPARED, "ms a step", "MiB a step", "weights", *more)
    yield _row(*head)
    yield f"|---|{'---:|' * (len(head) - 1)}"
    for name, mechanism in mechanisms.items():
        seeds = sorted(mechanism.seeds)
        items = len(mechanism.seeds[seeds[0]]["spoken"])
        cells = [
            f"{whole(mechanism.rate(seeds, 'loss', 'swapped'), len(seeds), items):.0f}",
            *(_shown(interval(mechanism.rate(seeds, each), len(seeds), items), FORMS[each]) for each in COMPARED),
            f"{mechanism.least('step_s', 1e-3):.0f}",
            f"{mechanism.least('kept_bytes', 2**20):.0f}",
            f"{mechanism.least('weights'):,.0f}",
        ]
        if streamed:
            state = np.mean([line["probe"]["state_values"] for line in mechanism.seeds.values()])
            cells += [f"{state:,.0f}", f"{mechanism.least('probe_s'):.1f}"]
        yield _row(name, str(len(seeds)), *cells)


def _differences(mechanisms: dict[str, Mechanism], pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield _row("difference", "seeds", *COMPARED)
    yield f"|---|{'---:|' * (len(COMPARED) + 1)}"
    for name, other in pairs:
        if name in mechanisms and other in mechanisms:
            seeds = sorted(mechanisms[name].seeds.keys() & mechanisms[other].seeds.keys())
            items = len(mechanisms[name].seeds[seeds[0]]["spoken"])
            cells = []
            for measure in COMPARED:
                one, two = (mechanisms[each].rate(seeds, measure) for each in (name, other))
                between = interval(lambda draw, one=one, two=two: one(draw) - two(draw), len(seeds), items)
                cells.append(_shown(between, f"+{FORMS[measure]}"))
            yield _row(f"{name} - {other}", str(len(seeds)), *cells)


def _shown(found: tuple[float, float, float], form: str) -> str:
    value, low, high = (format(number, form) for number in found)
    return f"{value} [{low}, {high}]"


def _returns(mechanisms: dict[str, Mechanism], gap: str) -> Iterator[str]:
    yield _row(f"{gap} in the gap", *(f"{gap_s} s" for gap_s in GAPS_S))
    yield f"|---|{'---:|' * len(GAPS_S)}"
    for name, mechanism in mechanisms.items():
        cells = []
        for gap_s in GAPS_S:
            value, low, high = _known(mechanism, gap, gap_s)
            kept, lost = (mechanism.share(gap, gap_s, name) for name in ("kept", "lost"))
            cells.append(f"{value:.0f} [{low:.0f}, {high:.0f}] ({kept:.0f}, {lost:.0f})")
        yield _row(name, *cells)


def _known(mechanism: Mechanism, gap: str, gap_s: int) -> tuple[float, float, float]:
    seeds = sorted(mechanism.seeds)
    trios = len(mechanism.seeds[seeds[0]]["probe"][gap]["kept"][str(gap_s)])
    return interval(mechanism.known(seeds, gap, gap_s), len(seeds), trios)


def plot(folder: Path, path: Path) -> None:
    """Plot the mean of slots kept and not lost against the length of the gap, with silence and with speech in it."""
    import matplotlib
    from matplotlib.figure import Figure

    found = load(folder).get("streamed")
    if not found:
        print(f"{path} is not drawn: no streamed cell is finished", file=sys.stderr)
        return
    picture = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, gap in zip(picture.subplots(1, len(GAPS), sharey=True), GAPS, strict=True):
        for name, colour in zip(STREAMED, COLOURS, strict=True):
            if name in found:
                values = [_known(found[name], gap, gap_s)[0] for gap_s in GAPS_S]
                axes.plot(GAPS_S, values, marker="o", markersize=4, color=colour, label=name)
        axes.axhline(50, color="grey", linestyle=":")
        axes.set(xscale="log", xlabel="seconds of gap", title=f"{gap} in the gap")
        axes.set_xticks(GAPS_S, [f"{gap_s}" for gap_s in GAPS_S])
        axes.minorticks_off()
    picture.axes[0].set_ylabel("slot kept, and not lost to a stranger (%)")
    picture.axes[-1].legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small", frameon=False)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "claims"}):
        picture.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--plot", type=Path, help="an .svg or .png of the re-entry probe; needs matplotlib")
    options = parser.parse_args(arguments)
    print(report(options.out))
    if options.plot is not None:
        plot(options.out, options.plot)


if __name__ == "__main__":
    main()

"""Make tables and plots of the finished cells of an ablation.

    python summary.py OUT [--plots FOLDER]

All rates are in percent. Intervals hold 95 % of bootstrap draws, in which conversations and seeds are resampled with
replacement, alike on both sides of a difference. With three seeds they are somewhat too narrow.
"""

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DRAWS = 2000
COLOURS = {"none": "#555555", "label": "#ccbb44", "A": "#4477aa", "B": "#ee6677", "C": "#228833"}
ORDER = {
    "arm": tuple(COLOURS),
    "loss": ("hybrid", "sort", "PIT"),
    "deep": ("PIT", "off", "sort"),
    "turns": ("parametric", "half", "replayed"),
}
CONTROLS = {"arm": ("none", "label"), "loss": ("hybrid",), "deep": ("PIT",), "turns": ("parametric",)}
BASIC = ("hybrid", "PIT", "parametric")  # losses and turns of the first question
# Training conversations; new ones of the same voices; unseen voices; unseen voices in the turns of real recordings.
SPLITS = ("fit", "train", "dev", "real")


class Settings(NamedTuple):
    """The settings of a cell, without its seed."""

    arm: str
    pool: int
    loss: str
    deep: str
    turns: str


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The results of cells that differ only in the seed, by seed."""

    results: dict[int, dict]

    def array(self, split: str, name: str) -> np.ndarray:
        """Return a count of each conversation: (seeds, conversations)."""
        return np.array([self.results[seed][split][name] for seed in sorted(self.results)])

    def of(self, seeds: Iterable[int]) -> "Group":
        """Return the group with these seeds only."""
        return Group({seed: self.results[seed] for seed in seeds})


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Bootstrap weights: (draws, seeds), and (draws, conversations) of each split."""

    seeds: np.ndarray
    rows: dict[str, np.ndarray]

    @classmethod
    def once(cls, group: Group) -> "Weights":
        """Return weights of 1."""
        sizes = {split: group.array(split, "total").shape for split in SPLITS}
        return cls(np.ones((1, sizes["dev"][0])), {split: np.ones((1, rows)) for split, (_, rows) in sizes.items()})

    @classmethod
    def drawn(cls, group: Group) -> "Weights":
        """Return weights resampled with replacement: the same for groups with as many seeds and conversations."""
        once = cls.once(group)
        return cls._drawn(once.seeds.shape[1], tuple((split, rows.shape[1]) for split, rows in once.rows.items()))

    @classmethod
    @cache
    def _drawn(cls, seeds: int, sizes: tuple[tuple[str, int], ...]) -> "Weights":
        rng = np.random.default_rng(0)

        def draw(size: int) -> np.ndarray:
            return rng.multinomial(size, np.full(size, 1 / size), DRAWS).astype(float)

        return cls(draw(seeds), {split: draw(size) for split, size in sizes})


Measure = Callable[[Group, Weights], np.ndarray]


def rate(split: str, name: str, of: str | None = "total") -> Measure:
    """Return a measure: the sum of one count over the sum of another (None: over conversations), in percent."""

    def measured(group: Group, weights: Weights) -> np.ndarray:
        def total(counted: np.ndarray) -> np.ndarray:
            return np.einsum("ds,sc,dc->d", weights.seeds, counted, weights.rows[split], optimize=True)

        counted = group.array(split, name)
        return 100 * total(counted) / total(group.array(split, of) if of else np.ones_like(counted))

    return measured


def gap(other: str) -> Measure:
    """Return a measure: the DER of unseen voices minus another one."""
    return lambda group, weights: MEASURES["dev DER"](group, weights) - MEASURES[other](group, weights)


MEASURES: dict[str, Measure] = {
    "dev DER": rate("dev", "errors"),
    "train DER": rate("train", "errors"),
    "fit DER": rate("fit", "errors"),
    "gap": gap("fit DER"),
    "voices' gap": gap("train DER"),
    "confusion": rate("dev", "confusion"),
    "real-turns DER": rate("real", "errors"),
    "dev DER in order": rate("dev", "errors_in_order"),
    "order right": rate("dev", "order_right", None),
    "count right": rate("dev", "count_right", None),
}
DRAWN = ("dev DER", "fit DER", "gap", "real-turns DER", "order right")
VARIED = {"arms": ("pool",), "losses": ("loss", "deep"), "turns": ("turns",)}  # per question, beside the arm
COMPARED = ("dev DER", "gap", "voices' gap", "real-turns DER", "dev DER in order", "order right", "count right")


def load(out: Path) -> dict[Settings, Group]:
    """Read the finished cells."""
    groups: dict[Settings, Group] = {}
    for path in sorted(out.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        cell = result["cell"]
        key = Settings(*(cell[field] for field in Settings._fields))
        groups.setdefault(key, Group({})).results[cell["seed"]] = result
    return groups


def value(group: Group, measure: str) -> float:
    """Return a measure over all seeds and conversations."""
    return float(MEASURES[measure](group, Weights.once(group))[0])


def difference(one: Group, other: Group, measure: str) -> tuple[float, float, float] | None:
    """Return a measure of ``one`` minus that of ``other``, and its interval; None without a common seed."""
    seeds = sorted(one.results.keys() & other.results.keys())
    if not seeds:
        return None
    pair = one.of(seeds), other.of(seeds)
    drawn = Weights.drawn(pair[0])
    gaps = MEASURES[measure](pair[0], drawn) - MEASURES[measure](pair[1], drawn)
    low, high = np.percentile(gaps, [2.5, 97.5])
    return value(pair[0], measure) - value(pair[1], measure), float(low), float(high)


def questions(groups: Iterable[Settings]) -> dict[str, list[Settings]]:
    """Return the settings that answer each question; some answer two."""
    groups = list(groups)
    parametric = [key for key in groups if key.turns == BASIC[2]]
    of_losses = {key[:2] for key in groups if key[2:4] != BASIC[:2]}
    of_turns = {key[:4] for key in groups if key.turns != BASIC[2]}
    return {
        "arms": [key for key in parametric if key[2:] == BASIC],
        "losses": [key for key in parametric if key[:2] in of_losses],
        "turns": [key for key in groups if key[:4] in of_turns],
    }


def report(out: Path) -> str:
    """Return all tables as Markdown: values of each question's groups, and differences from the controls."""
    groups = load(out)
    if not groups:
        return "no cell is finished"
    results = [result for group in groups.values() for result in group.results.values()]
    some = next(iter(groups.values()))
    baseline = rate("dev", "one_speaker_errors")(some, Weights.once(some))[0]
    seconds = np.mean([result["cpu_s"] for result in results])
    early, before, late = (np.mean([result["losses"][epoch] for result in results]) for epoch in (0, -2, -1))
    arms, losses, turns = questions(groups).values()
    return "\n".join(
        [
            f"{len(results)} cells of {results[0]['steps']} steps, {seconds:.0f} s of one core each, measured on "
            f"{some.array('dev', 'total').shape[1]} conversations of each split. Dev DER of one speaker wherever there "
            f"is speech: {baseline:.1f} %. Loss of the output: {early:.3f} in the first epoch, {before:.3f} in the "
            f"last but one, {late:.3f} in the last.\n",
            *_values(groups, ("pool", "arm"), arms),
            *_differences(groups, ("pool", "arm"), arms),
            *_values(groups, ("loss", "deep", "arm"), losses),
            *_differences(groups, ("loss", "deep", "arm"), losses),
            *_differences(groups, ("arm", "deep", "loss"), losses),
            *_differences(groups, ("arm", "loss", "deep"), losses),
            *_values(groups, ("arm", "turns"), turns),
            *_differences(groups, ("arm", "turns"), turns),
        ]
    )


def _values(groups: dict[Settings, Group], columns: tuple[str, ...], keys: list[Settings]) -> list[str]:
    """Return a table of the measures of these groups."""
    rows = [
        _line(
            *(str(getattr(key, column)) for column in columns),
            str(len(groups[key].results)),
            *(f"{value(groups[key], measure):.1f}" for measure in MEASURES),
        )
        for key in _sorted(columns, keys)
    ]
    return _table((*columns, "seeds", *MEASURES), len(columns), rows)


def _differences(groups: dict[Settings, Group], columns: tuple[str, ...], keys: list[Settings]) -> list[str]:
    """Return a table of differences between these groups and their controls in the last of ``columns``."""
    *same, varied = columns
    order = ORDER[varied]
    rows: list[str] = []
    for key in _sorted(columns, keys):
        for control in CONTROLS[varied]:
            other, name = key._replace(**{varied: control}), getattr(key, varied)
            if other in keys and order.index(control) < order.index(name):
                found = [difference(groups[key], groups[other], measure) for measure in COMPARED]
                shown = ["" if d is None else f"{d[0]:+.1f} [{d[1]:+.1f}, {d[2]:+.1f}]" for d in found]
                rows.append(_line(*(str(getattr(key, column)) for column in same), f"{name} - {control}", *shown))
    return _table((*same, f"{varied}: difference", *COMPARED), len(columns), rows)


def _sorted(columns: tuple[str, ...], keys: list[Settings]) -> list[Settings]:
    def place(key: Settings) -> list[int]:
        chosen = [(column, getattr(key, column)) for column in columns]
        return [ORDER[column].index(name) if column in ORDER else name for column, name in chosen]

    return sorted(keys, key=place)


def _table(columns: tuple[str, ...], named: int, rows: list[str]) -> list[str]:
    rule = f"{'|---' * named}{'|---:' * (len(columns) - named)}|"
    return [_line(*columns), rule, *rows, ""] if rows else []


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def plot(groups: dict[Settings, Group], folder: Path) -> None:
    """Plot the measures of each question, in one figure each; points are single seeds."""
    import matplotlib
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    for question, keys in questions(groups).items():
        if not keys:
            continue
        picture = Figure(figsize=(15, 3.4), layout="constrained")
        panels = picture.subplots(1, len(DRAWN))
        for axes, measure in zip(panels, DRAWN, strict=True):
            _draw(axes, groups, _sorted(VARIED[question], keys), VARIED[question], measure)
        picture.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ablation"}):
            picture.savefig(folder / f"{question}.svg", metadata={"Date": None})


def _draw(
    axes: Any, groups: dict[Settings, Group], keys: list[Settings], columns: tuple[str, ...], measure: str
) -> None:
    """Plot one measure: a tick for each value of ``columns``, with the arms side by side."""

    def place(key: Settings) -> str:
        return ", ".join(str(getattr(key, column)) for column in columns)

    places = list(dict.fromkeys(map(place, keys)))
    arms = [arm for arm in COLOURS if any(key.arm == arm for key in keys)]
    for shift, arm in enumerate(arms):
        of_arm = [key for key in keys if key.arm == arm]
        at = [places.index(place(key)) + 0.06 * (shift - len(arms) / 2 + 0.5) for key in of_arm]
        means = [value(groups[key], measure) for key in of_arm]
        axes.plot(at, means, "o-" if len(columns) == 1 else "o", markerfacecolor="none", color=COLOURS[arm], label=arm)
        for x, key in zip(at, of_arm, strict=True):
            single = [value(groups[key].of([seed]), measure) for seed in groups[key].results]
            axes.plot([x] * len(single), single, ".", color=COLOURS[arm], markersize=4)
    axes.set_title(f"{measure}, %")
    axes.set_xlabel(", ".join(columns))
    axes.set_xticks(range(len(places)), places, fontsize="small", rotation=0 if len(places) < 5 else 90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--plots", type=Path, help="folder for the pictures; they need matplotlib")
    options = parser.parse_args()
    print(report(options.out))
    if options.plots is not None:
        plot(load(options.out), options.plots)


if __name__ == "__main__":
    main()

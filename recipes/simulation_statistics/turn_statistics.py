"""Compare the turn-taking of simulated and real conversations, quantity by quantity.

    python turn_statistics.py TURNS BANK OUT [--recipe RECIPE] [--cache FOLDER] [--seed 0]

TURNS holds ``ami`` and ``voxconverse`` as folders of reference RTTM; replayed turns come from the training files (AMI
train, VoxConverse dev), and all sources are compared with the held-out files (AMI dev and test, VoxConverse test). BANK
is a bank of voices. OUT gets ``tables.md``, ``distances.json`` and ``distributions.svg``.

Measurements are on windows of one minute, in hops of 10 ms, after gaps of a speaker shorter than 0.3 s are closed (as
in NIST's references). Simulated conversations are measured by their labels: the turns, with the voices' pauses in them.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from sortformer.config.model import HeadConfig, ModelConfig
from sortformer.config.simulation import ChannelConfig, SimulationConfig
from sortformer.config.train import TrainConfig
from sortformer.simulate import Simulator, TurnPatterns, VoiceBank
from sortformer.simulate.speech_activity import active_runs
from sortformer.simulate.targets import bridged

WINDOW_S = 60
HOPS = 100 * WINDOW_S
SHORTEST_GAP = 30  # hops
DRAWS = 500
HELD_OUT = {"AMI": ("ami/dev", "ami/test"), "VoxConverse": ("voxconverse/test",)}
TRAINING = {"AMI": "ami/train", "VoxConverse": "voxconverse/dev"}
EXCLUDE = ("EN200*",)  # meetings never used in training: the real dev set has clips of them
EVERY_10_MS = ModelConfig(head=HeadConfig(upsampling=8, estimate_layers=()))

Windows = list[list[np.ndarray]]  # for each recording its windows, (HOPS, S) bool


@dataclass(frozen=True, slots=True)
class Quantity:
    """A measure of a window: an array of values, one per event, in whole numbers of ``step``."""

    unit: str
    step: float
    most: int
    measure: Callable[[np.ndarray], np.ndarray]


def pauses(active: np.ndarray) -> np.ndarray:
    """Return the lengths of silences between speech, in hops."""
    starts, ends = active_runs(active.any(axis=1))
    return starts[1:] - ends[:-1]


def turns(active: np.ndarray) -> np.ndarray:
    """Return the lengths of single speakers' turns, in hops."""
    return np.concatenate([_lengths(column) for column in active.T] or [np.zeros(0, int)])


def overlaps(active: np.ndarray) -> np.ndarray:
    """Return the lengths of overlaps of two or more speakers, in hops."""
    return _lengths(active.sum(axis=1) > 1)


def overlap_share(active: np.ndarray) -> np.ndarray:
    """Return the overlapped share of the speech, per mille; empty without speech."""
    speech, overlap = active.any(axis=1).sum(), (active.sum(axis=1) > 1).sum()
    return np.array([round(1000 * overlap / speech)] if speech else [], dtype=int)


def speech_share(active: np.ndarray) -> np.ndarray:
    """Return the share of the window with speech, per mille."""
    return np.array([round(1000 * active.any(axis=1).mean())])


def speakers(active: np.ndarray) -> np.ndarray:
    """Return the number of speakers in the window."""
    return np.array([active.any(axis=0).sum()])


QUANTITIES = {
    "pause": Quantity("s", 0.01, HOPS, pauses),
    "turn": Quantity("s", 0.01, HOPS, turns),
    "overlap": Quantity("s", 0.01, HOPS, overlaps),
    "overlap share": Quantity("% of speech", 0.1, 1000, overlap_share),
    "speech share": Quantity("% of time", 0.1, 1000, speech_share),
    "speakers": Quantity("a minute", 1.0, 20, speakers),
}


def closed(active: np.ndarray) -> np.ndarray:
    """Return the activity (T, S) with each speaker's gaps shorter than 0.3 s filled."""
    return bridged(active.T, SHORTEST_GAP).T


def real_windows(patterns: TurnPatterns) -> Windows:
    """Cut recordings into whole minutes, from the start to the last turn."""
    return [list(_minutes(table)) for table in patterns.recordings]


def simulated_windows(simulator: Simulator, count: int, seed: int) -> Windows:
    """Simulate ``count`` conversations of one minute, each as a recording."""
    generator = torch.Generator().manual_seed(seed)
    rows = (simulator.batch(generator, 1, WINDOW_S).activity[0] for _ in range(count))
    return [[closed(row.numpy() > 0.5)] for row in rows]


def counts(windows: Windows, quantity: Quantity) -> np.ndarray:
    """Return how often each value occurs in each recording: (R, most + 1)."""
    found = np.zeros((len(windows), quantity.most + 1), dtype=np.float32)
    for row, recording in zip(found, windows, strict=True):
        for window in recording:
            np.add.at(row, np.minimum(quantity.measure(window), quantity.most), 1)
    return found


def distances(one: np.ndarray, other: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the Wasserstein-1 distance (in units of the quantity) and the Kolmogorov-Smirnov statistic.

    ``one`` and ``other`` (..., V) count the values 0, 1, ..., V - 1 times ``step``. The first is the area between the
    two distribution functions, the second their largest difference (scipy.stats.wasserstein_distance, ks_2samp).
    """
    gap = np.abs(_cumulative(one) - _cumulative(other))
    return gap.sum(axis=-1) * step, gap.max(axis=-1)


def interval(one: np.ndarray, other: np.ndarray, step: float, seed: int) -> np.ndarray:
    """Return the 95 % percentile bootstrap of both distances, (2, 2), with recordings of both sides resampled."""
    rng = np.random.default_rng(seed)
    drawn = [rng.multinomial(len(side), np.full(len(side), 1 / len(side)), DRAWS) @ side for side in (one, other)]
    return np.stack([np.percentile(distance, [2.5, 97.5]) for distance in distances(drawn[0], drawn[1], step)])


def median(total: np.ndarray, step: float) -> float:
    """Return the median of values that occur ``total`` (V,) times."""
    return step * float(np.searchsorted(_cumulative(total), 0.5))


def mean(total: np.ndarray, step: float) -> float:
    """Return the mean of values that occur ``total`` (V,) times."""
    return step * float(total @ np.arange(len(total)) / max(1.0, total.sum()))


def compare(sources: dict[str, Windows], targets: dict[str, Windows], seed: int) -> list[dict[str, object]]:
    """Return a row for each source, target and quantity; a source named after a target is compared with it only."""
    rows: list[dict[str, object]] = []
    for name, quantity in QUANTITIES.items():
        of_target = {target: counts(windows, quantity) for target, windows in targets.items()}
        for source, windows in sources.items():
            found = counts(windows, quantity)
            for target, truth in of_target.items():
                if any(other in source for other in targets if other != target):
                    continue
                wasserstein, ks = distances(found.sum(axis=0), truth.sum(axis=0), quantity.step)
                spread = interval(found, truth, quantity.step, seed)
                rows.append(
                    {
                        "quantity": name,
                        "unit": quantity.unit,
                        "source": source,
                        "target": target,
                        "wasserstein": float(wasserstein),
                        "wasserstein_interval": spread[0].tolist(),
                        "ks": float(ks),
                        "ks_interval": spread[1].tolist(),
                        "median": median(found.sum(axis=0), quantity.step),
                        "mean": mean(found.sum(axis=0), quantity.step),
                        "target_median": median(truth.sum(axis=0), quantity.step),
                        "target_mean": mean(truth.sum(axis=0), quantity.step),
                    }
                )
    return rows


def markdown(rows: list[dict[str, object]]) -> str:
    """Return a table per corpus: mean and median of both sides, and the distances with their intervals."""
    parts: list[str] = []
    for target in dict.fromkeys(row["target"] for row in rows):
        parts += [
            f"### {target}, held out\n",
            "| quantity | turns | mean (real) | median (real) | Wasserstein-1 | KS |",
            "|---|---|---:|---:|---:|---:|",
        ]
        parts += [
            "| {quantity}, {unit} | {source} | {mean:.2f} ({target_mean:.2f}) | {median:.2f} ({target_median:.2f}) "
            "| {wasserstein:.2f} [{wasserstein_interval[0]:.2f}, {wasserstein_interval[1]:.2f}] "
            "| {ks:.2f} [{ks_interval[0]:.2f}, {ks_interval[1]:.2f}] |".format_map(row)
            for row in rows
            if row["target"] == target
        ]
        parts.append("")
    return "\n".join(parts)


def plot(sources: dict[str, Windows], path: Path) -> None:
    """Plot the distribution function of every quantity."""
    import matplotlib
    from matplotlib.figure import Figure

    colours = ("#4477aa", "#ee6677", "#222222", "#888888")
    picture = Figure(figsize=(11, 6), layout="constrained")
    for axes, (name, quantity) in zip(picture.subplots(2, 3).flat, QUANTITIES.items(), strict=True):
        at = np.arange(min(quantity.most, 1000) + 1)[:: 20 if quantity.most == 1000 else 1]
        if quantity.unit == "s":
            at = np.unique(np.geomspace(5, quantity.most, 60).astype(int))
        for colour, (source, windows) in zip(colours, sources.items(), strict=False):
            share = _cumulative(counts(windows, quantity).sum(axis=0))[at]
            axes.plot(at * quantity.step, share, label=source, color=colour)
        axes.set(xlabel=f"{name}, {quantity.unit}", ylim=(0, 1), xscale="log" if quantity.unit == "s" else "linear")
        axes.minorticks_off()
    picture.axes[0].set_ylabel("share at most so long")
    picture.axes[0].legend(fontsize="small", frameon=False)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "turns"}):
        picture.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("turns", type=Path)
    parser.add_argument("bank", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", type=Path, help="whose simulation is looked at, in place of the defaults")
    parser.add_argument("--cache", type=Path, help="folder of the decoded bank")
    parser.add_argument("--count", type=int, default=400, help="simulated minutes of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    bank = VoiceBank.load(options.bank, speeds=(1.0,), cache=options.cache)
    config = TrainConfig.read(options.recipe).simulation if options.recipe else SimulationConfig()
    config = replace(config, channel=ChannelConfig(clean_probability=1.0))  # only the labels are used

    def simulated(replay: float, patterns: TurnPatterns | None = None) -> Windows:
        kind = Simulator(bank, replace(config, replay_probability=replay), patterns, model=EVERY_10_MS)
        return simulated_windows(kind, options.count, options.seed)

    def gathered(*folders: str, exclude: tuple[str, ...] = ()) -> TurnPatterns:
        return TurnPatterns.from_rttm([options.turns / folder for folder in folders], exclude)

    training = {
        "AMI": gathered(TRAINING["AMI"], exclude=EXCLUDE),
        "VoxConverse": gathered(TRAINING["VoxConverse"]),
    }
    targets = {name: real_windows(gathered(*folders)) for name, folders in HELD_OUT.items()}
    sources = {
        "parametric": simulated(0.0),
        "replayed": simulated(1.0, gathered(*TRAINING.values(), exclude=EXCLUDE)),
        **{f"replayed {name}": simulated(1.0, patterns) for name, patterns in training.items()},
        **{f"{name}, training files": real_windows(patterns) for name, patterns in training.items()},
    }
    rows = compare(sources, targets, options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "distances.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (options.out / "tables.md").write_text(markdown(rows), encoding="utf-8")
    plot({name: sources[name] for name in ("parametric", "replayed")} | targets, options.out / "distributions.svg")
    print(markdown(rows))


def _lengths(active: np.ndarray) -> np.ndarray:
    starts, ends = active_runs(active)
    return ends - starts


def _cumulative(count: np.ndarray) -> np.ndarray:
    total = np.cumsum(count, axis=-1, dtype=np.float64)
    return total / np.maximum(total[..., -1:], 1.0)


def _minutes(table: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the whole minutes of one recording, given as (n, 3) speaker, start, end in hops."""
    whole = np.zeros((int(table[:, 2].max()), int(table[:, 0].max()) + 1), dtype=bool)
    for speaker, start, end in table:
        whole[start:end, speaker] = True
    whole = closed(whole)
    for first in range(0, len(whole) - HOPS + 1, HOPS):
        yield whole[first : first + HOPS]


if __name__ == "__main__":
    main()

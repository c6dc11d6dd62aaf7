"""Plot the results of returning.py: python plot.py OUT.svg FOUND.json [FOUND.json ...]

The peak memory along the stream, and how often a returning speaker kept the slot, by the length of the silence; one
line for each stream, with and without memory of speakers. Chance is one over the number of slots.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def label(found: dict[str, Any]) -> str:
    return f"{found['preset']}, {'speakers remembered' if found['cache'] else 'FIFO only'}"


def kept(found: dict[str, Any]) -> list[float]:
    """Return for each silence the percentage of returns that kept the slot."""
    by_gap = [[event["kept"] for event in found["returns"] if event["gap_s"] == gap] for gap in found["gaps"]]
    return [100 * sum(events) / len(events) if events else float("nan") for events in by_gap]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="an .svg or .png")
    parser.add_argument("found", type=Path, nargs="+", help="what returning.py wrote")
    options = parser.parse_args()
    figure, (memory, slots) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    streams = [json.loads(path.read_text()) for path in options.found]
    for found in streams:
        minutes = found["minutes"]
        memory.plot([m["minute"] / 60 for m in minutes], [m["peak_mib"] for m in minutes], label=label(found))
        slots.plot(found["gaps"], kept(found), marker="o", label=label(found))
    memory.set(xlabel="hours of audio", ylabel="peak memory (MiB)", ylim=(0, 1.1 * memory.get_ylim()[1]))
    for count in sorted({found["slots"] for found in streams}):
        slots.axhline(100 / count, color="grey", linestyle=":", label=f"chance, of {count} slots")
    gaps = sorted({gap for found in streams for gap in found["gaps"]})
    slots.set(xscale="log", xlabel="seconds of silence", ylabel="slot kept (%)", ylim=(0, 100))
    slots.set_xticks(gaps, [f"{gap:g}" for gap in gaps])
    for axes in (memory, slots):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(options.out)


if __name__ == "__main__":
    main()

"""Draw what long_audio.py found: python plot.py FOUND.jsonl OUT.svg"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from cells import FIRST_TIER

STREAMED = ", streamed"  # drawn dashed, in the colour of the same mechanism taken whole


def main(found: Path, out: Path) -> None:
    cells = [json.loads(line) for line in found.read_text().splitlines()]
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    whole = [name for name in FIRST_TIER if not name.endswith(STREAMED)]
    for name in FIRST_TIER:
        reached = sorted((c["minutes"], c["seconds"], c["mib"]) for c in cells if c["mechanism"] == name and "mib" in c)
        base = name.removesuffix(STREAMED)
        style = "--" if name != base else "-"
        color = f"C{whole.index(base)}" if base in whole else "black"
        for panel, column in zip(panels, (1, 2), strict=True):
            panel.plot(
                [c[0] for c in reached], [c[column] for c in reached], style, color=color, marker=".", label=name
            )
    for panel, title in zip(panels, ("seconds, one thread", "peak memory above the start (MiB)"), strict=True):
        panel.set(xscale="log", yscale="log", xlabel="minutes of audio", title=title)
        panel.grid(alpha=0.3, which="both")
    figure.legend(*panels[0].get_legend_handles_labels(), fontsize=8, loc="outside right center")
    figure.savefig(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

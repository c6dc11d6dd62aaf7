"""Measure attention on long audio: python long_audio.py OUT.jsonl [--mechanisms NAME ...] [--minutes N ...]

Each cell, a mechanism and a length, runs in a separate process: two layers of 64 channels and two heads on random
frames of 80 ms, whole or (streamed) in chunks of 15 s, on one thread, with denormals flushed. Seconds are CPU time, so
that a busy machine changes them little; memory is the peak of the process above its value before the pass. A cell is
stopped after 120 s of CPU time, and longer ones of its mechanism are skipped. Cells that are already in OUT.jsonl are
not measured again.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cells import EXPECTED, FIRST_TIER, MECHANISMS, STREAMED

FRAMES_A_MINUTE = 750
CHUNK_FRAMES = 188  # 15 s
NAMES = (*MECHANISMS, *STREAMED)
MINUTES = (1, 3, 10, 30, 60, 180, 600)
ALL_UP_TO = 30
"""Minutes up to which every mechanism is measured; the first tier goes on."""
LIMIT_S = 120
MEMORY_GIB = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mechanisms", nargs="*", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--minutes", nargs="*", type=float, default=MINUTES)
    parser.add_argument("--limit", type=int, default=LIMIT_S, help="seconds of the processor for a cell")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.one[0], float(options.one[1]))))
        return
    found = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    with options.out.open("a") as out:
        for name in options.mechanisms:
            for minutes in options.minutes:
                if minutes > ALL_UP_TO and name not in FIRST_TIER:
                    break
                cell = next((c for c in found if (c["mechanism"], c["minutes"]) == (name, minutes)), None)
                if cell is None:
                    cell = {"mechanism": name, "minutes": minutes} | apart(name, minutes, options.limit)
                    found.append(cell)
                    out.write(json.dumps(cell) + "\n")
                    out.flush()
                if "stopped" in cell:
                    break
    print(table(found))


def apart(name: str, minutes: float, limit_s: int) -> dict[str, Any]:
    """Measure a cell in a separate process; "stopped" is the reason if it has no numbers."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_GIB << 30, MEMORY_GIB << 30))

    command = [sys.executable, __file__, "-", "--one", name, str(minutes)]
    run = subprocess.run(command, preexec_fn=bound, capture_output=True, text=True)
    if run.returncode == 0:
        return json.loads(run.stdout.splitlines()[-1])
    if run.returncode < 0:
        return {"stopped": f"at {limit_s} s"}
    if "memory" in run.stderr.splitlines()[-1].lower():
        return {"stopped": f"at {MEMORY_GIB} GiB"}
    sys.exit(f"{name} at {minutes:g} min failed: {run.stderr}")


def measure(name: str, minutes: float) -> dict[str, float]:
    """Return CPU seconds, and peak MiB above the start, of one pass over so many minutes."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
    import torch
    from peak_memory import peak_mib

    from sortformer.config.model import EncoderConfig
    from sortformer.model.encoder import Encoder

    torch.set_flush_denormal(True)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    frames = round(minutes * FRAMES_A_MINUTE)
    config = EncoderConfig(
        kind="transformer",
        subsampling="stacking",
        dim=64,
        layers=2,
        heads=2,
        ff_dim=128,
        attention=(STREAMED[name] if name in STREAMED else MECHANISMS[name](frames),),
        dropout=0.0,
    )
    encoder = Encoder(16, config).eval()
    with torch.inference_mode():
        emb, valid = torch.randn(1, frames, 64), torch.ones(1, frames, dtype=torch.bool)
        encoder(emb[:, :100], valid[:, :100])
        before, started = peak_mib(), time.process_time()
        if name in STREAMED:
            states = encoder.blocks.init_state(emb)
            for chunk in zip(emb.split(CHUNK_FRAMES, dim=1), valid.split(CHUNK_FRAMES, dim=1), strict=True):
                states = encoder(*chunk, states).state
        else:
            encoder(emb, valid)
        return {"seconds": time.process_time() - started, "mib": peak_mib() - before}


def slope(cells: list[dict[str, Any]], quantity: str) -> float | None:
    """Return the slope of a quantity against the minutes, both logarithmic, over the last three lengths reached."""
    points = [(math.log(c["minutes"]), math.log(c[quantity])) for c in cells if c.get(quantity, 0) > 0][-3:]
    if len(points) < 3:
        return None
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def overtakes(cells: list[dict[str, Any]], full: list[dict[str, Any]]) -> str:
    """Return the length from which on a mechanism beats full attention, at all lengths that either completed."""
    limits = {cell["minutes"]: cell.get("seconds", math.inf) for cell in full}
    since, last = None, 0.0
    for minutes, seconds in sorted((cell["minutes"], cell.get("seconds", math.inf)) for cell in cells):
        limit = limits.get(minutes, math.inf)
        if min(seconds, limit) < math.inf:
            since, last = (minutes if since is None else since) if seconds < limit else None, minutes
    return f"not by {last:g} min" if since is None else f"{since:g} min"


def table(found: list[dict[str, Any]]) -> str:
    """Return the seconds / MiB of every cell, and the slopes, as Markdown."""
    lengths = sorted({cell["minutes"] for cell in found})
    head = ["mechanism", *(f"{m:g} min" for m in lengths), "slope s", "expected", "slope MiB", "faster than full from"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    full = [cell for cell in found if cell["mechanism"] == "full"]
    for name in dict.fromkeys(cell["mechanism"] for cell in found):
        cells = sorted((cell for cell in found if cell["mechanism"] == name), key=lambda cell: cell["minutes"])
        shown = {c["minutes"]: c.get("stopped") or f"{c['seconds']:.2f} s / {c['mib']:.0f}" for c in cells}
        slopes = ["" if (s := slope(cells, q)) is None else f"{s:.2f}" for q in ("seconds", "mib")]
        due = "{} ± {}".format(*EXPECTED[name]) if name in EXPECTED else ""
        row = [
            name,
            *(shown.get(m, "") for m in lengths),
            slopes[0],
            due,
            slopes[1],
            overtakes(cells, full) if full and name != "full" else "",
        ]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

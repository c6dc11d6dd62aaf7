"""Measure the speed and memory of diarization: python recipes/benchmark/diarize.py

Each length runs in a separate process, on the meeting in demos/ repeated to that length; one more line is the whole
command, from its start to the RTTM of demos/meeting.wav. The first run of each warms the file cache and is not counted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile
from peak_memory import peak_mib

DEMO = Path(__file__).resolve().parents[2] / "demos" / "meeting.wav"
RUNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--model", help="a model's folder; the one inside the package if not given")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(_measure(options.one, options.model, options.device)))
        return
    print(f"{os.cpu_count()} processors, device {options.device}, best of {RUNS} runs\n")
    print("| recording | seconds | of real time | processor seconds | peak memory |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for minutes in options.minutes:
            path = _recording(Path(folder), minutes)
            arguments = [sys.executable, __file__, "--one", str(path), "--device", options.device]
            arguments += ["--model", options.model] if options.model else []
            runs = [json.loads(subprocess.check_output(arguments)) for _ in range(RUNS + 1)][1:]
            best = min(runs, key=lambda run: run["seconds"])
            share = 100 * best["seconds"] / (60 * minutes)
            cells = (f"{minutes:g} min", f"{best['seconds']:.2f}", f"{share:.2f} %", f"{best['cpu']:.2f}")
            print(f"| {' | '.join(cells)} | {best['peak']:.0f} MiB |")
    command = [sys.executable, "-m", "sortformer", "diarize", str(DEMO), "--device", options.device]
    command += ["--model", options.model] if options.model else []
    walls = [_wall(command) for _ in range(RUNS + 1)][1:]
    print(f"\n`sortformer diarize demos/meeting.wav` (30 s), from its start to the RTTM: {min(walls):.2f} s")


def _measure(path: Path, model: str | None, device: str) -> dict[str, float]:
    """Return seconds and CPU seconds of one diarization, without loading, and the peak memory (MiB) of the process."""
    from sortformer import Diarizer

    diarizer = Diarizer.load(model, device)
    started, used = time.perf_counter(), time.process_time()
    diarizer(path)
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - used,
        "peak": peak_mib(),
    }


def _recording(folder: Path, minutes: float) -> Path:
    samples, rate = soundfile.read(DEMO, dtype="int16")
    path = folder / f"{minutes:g}.wav"
    soundfile.write(path, np.resize(samples, round(60 * minutes * rate)), rate)
    return path


def _wall(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

"""Measure the cost of live streams: python recipes/benchmark/streaming.py

Concurrent streams, batched in one pool, once their speaker caches are full; an hour from a file, offline; and the peak
memory of one endless stream. Each measurement runs in a separate process, on the meeting in demos/, repeated.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
from peak_memory import peak_mib

DEMO = Path(__file__).resolve().parents[2] / "demos" / "meeting.wav"
RATE = 16_000
FULL_S = 600.0  # until caches and stored voices are full, so that the cost of a step is final


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--preset", help="of the concurrent streams; the shortest of the model's if not given")
    parser.add_argument("--seconds", type=float, default=30.0, help="of audio in each of them that are measured")
    parser.add_argument("--file-minutes", type=float, default=60.0, help="0: no file")
    parser.add_argument("--hours", type=float, default=10.0, help="of the endless stream; 0: none")
    parser.add_argument("--model", help="a model's folder; the one inside the package if not given")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        kind, size = options.one
        for line in {"streams": _streams, "file": _file, "endless": _endless}[kind](options, float(size)):
            print(json.dumps(line), flush=True)
        return
    print(f"{os.cpu_count()} processors, device {options.device}\n")
    if options.streams:
        print("| preset | streams | compute a second of audio | processor seconds | slowest step | streams that fit |")
        print("|---|---:|---:|---:|---:|---:|")
    for count in options.streams:
        for line in _apart("streams", count):
            fit = count / line["load"]
            print(
                f"| {line['preset']} | {count} | {line['load']:.3f} s | {line['cpu']:.3f} s "
                f"| {1000 * line['slowest']:.0f} ms | {fit:.0f} |",
                flush=True,
            )
    for line in _apart("file", options.file_minutes) if options.file_minutes else ():
        print(
            f"\n{options.file_minutes:g} min from a file: {line['seconds']:.1f} s, "
            f"{100 * line['seconds'] / (60 * options.file_minutes):.2f} % of real time, peak {line['peak']:.0f} MiB",
            flush=True,
        )
    if options.hours:
        print("\n| endless stream, minute | compute a second of audio | peak memory |\n|---:|---:|---:|")
        for line in _apart("endless", options.hours):
            print(f"| {line['minute']:.0f} | {line['load']:.4f} s | {line['peak']:.0f} MiB |", flush=True)


def _apart(kind: str, size: float) -> Iterator[dict[str, float]]:
    """Yield the results of a measurement in a separate process."""
    command = [sys.executable, __file__, *sys.argv[1:], "--one", kind, str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    if process.returncode:
        sys.exit(process.returncode)


def _streams(options: argparse.Namespace, count: float) -> Iterator[dict[str, float | str]]:
    """Yield seconds and CPU seconds per second of ``count`` streams, and the slowest step (seconds).

    They continue a single one, of which each has a copy.
    """
    from sortformer import Diarizer, Session

    diarizer = Diarizer.load(options.model, options.device)
    preset = options.preset or list(diarizer.presets)[-1]
    pool, full = diarizer.pool(preset), diarizer.stream(preset)
    full.push(_meeting(FULL_S))
    snapshot = full.snapshot()
    sessions = [Session.restore(diarizer.model, snapshot) for _ in range(int(count))]
    waves = [_meeting(options.seconds, shift=index) for index in range(len(sessions))]
    chunk = round(diarizer.presets[preset].chunk_frames * 0.08 * RATE)
    spent, begun, used = [], time.perf_counter(), time.process_time()
    for start in range(0, len(waves[0]) - chunk + 1, chunk):
        step = time.perf_counter()
        pool.push({session: wave[start : start + chunk] for session, wave in zip(sessions, waves, strict=True)})
        spent.append(time.perf_counter() - step)
    audio_s = len(spent) * chunk / RATE
    yield {
        "preset": preset,
        "load": (time.perf_counter() - begun) / audio_s,
        "cpu": (time.process_time() - used) / audio_s,
        "slowest": max(spent),
    }


def _file(options: argparse.Namespace, minutes: float) -> Iterator[dict[str, float]]:
    """Yield the seconds for a file, without loading the model, and the peak memory (MiB) of the process."""
    from sortformer import Diarizer

    diarizer = Diarizer.load(options.model, options.device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.wav"
        with soundfile.SoundFile(path, "w", RATE, 1, "PCM_16") as file:
            for _ in range(round(minutes)):
                file.write(_meeting(60.0))
        started = time.perf_counter()
        diarizer(path)
        yield {"seconds": time.perf_counter() - started, "peak": peak_mib()}


def _endless(options: argparse.Namespace, hours: float) -> Iterator[dict[str, float]]:
    """Yield, for every ten minutes of a stream, seconds per second of audio, and the peak memory (MiB) so far."""
    from sortformer import Diarizer

    diarizer = Diarizer.load(options.model, options.device)
    session = diarizer.stream(next(iter(diarizer.presets)))
    for ten in range(round(6 * hours)):
        started = time.perf_counter()
        for _ in range(10):
            session.push(_meeting(60.0))
        yield {"minute": 10.0 * (ten + 1), "load": (time.perf_counter() - started) / 600, "peak": peak_mib()}


def _meeting(seconds: float, shift: int = 0) -> np.ndarray:
    samples, rate = soundfile.read(DEMO, dtype="float32")
    assert rate == RATE
    return np.resize(np.roll(samples, shift * RATE), round(seconds * RATE))


if __name__ == "__main__":
    main()

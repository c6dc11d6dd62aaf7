"""Compare NeMo and this package on NVIDIA's models: python recipes/benchmark/nvidia.py --peer-python PYTHON

PYTHON is an interpreter that can import NeMo. The models have the published configurations and random weights, the
recording is the meeting in demos/, repeated. Each measurement runs in a separate process, alternating between the
peers, with denormals flushed to zero; the first round warms the file cache and is not counted. The floor is the
arithmetic of the forward pass at the machine's best rate of matrix products in the same rounds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import peak_mib

DEMO = Path(__file__).resolve().parents[2] / "demos" / "meeting.wav"
RATE = 16_000
TASKS = {  # title -> generation, streaming preset or None for the whole recording at once
    "v1, whole": ("v1", None),
    "v2, whole": ("v2", None),
    "v2, streamed, 30.4s": ("v2", "30.4s"),
    "v2, streamed, 10s": ("v2", "10s"),
}
COLUMNS = ("import", "load", "start-up", "forward")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare NeMo and this package on NVIDIA's models.")
    parser.add_argument("--peer-python", help="interpreter with NeMo; this package alone if not given")
    parser.add_argument("--runs", type=int, default=3, help="of each measurement; the best counts")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the recording")
    parser.add_argument("--layers", type=int, help="of each stack, to try this script out")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        peer, task, folder = options.one
        print(json.dumps(_measure(peer, task, Path(folder))))
        return
    peers = ({"NeMo": options.peer_python} if options.peer_python else {}) | {"here": sys.executable}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        operations = _prepare(folder, options.layers, options.seconds)
        print(f"{os.cpu_count()} processors, {options.seconds:g} s of audio, best of {options.runs} runs\n")
        print(f"| | | {' | '.join(COLUMNS)} | peak memory | floor | of the rate | outputs differ by |")
        print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for task in TASKS:
            _compare(task, peers, folder, options.runs, operations[task])


def _compare(task: str, peers: dict[str, str], folder: Path, runs: int, operations: float) -> None:
    """Print a row of the table for each peer, and one of their ratios."""
    found: dict[str, list[dict[str, float]]] = {peer: [] for peer in peers}
    for _ in range(runs + 1):
        for peer, python in peers.items():
            command = [python, __file__, "--one", peer, task, str(folder)]
            output = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL)
            found[peer].append(json.loads(output.splitlines()[-1]))
    best = {peer: {key: min(run[key] for run in rounds[1:]) for key in rounds[0]} for peer, rounds in found.items()}
    rate = max(run["rate"] for rounds in found.values() for run in rounds[1:])
    for peer, numbers in best.items():
        seconds = " | ".join(f"{numbers[column]:.2f} s" for column in COLUMNS)
        print(f"| {task} | {peer} | {seconds} | {numbers['peak']:.0f} MiB ", end="")
        print(f"| {operations / rate:.2f} s | {rate / 1e9:.0f} GFLOP/s |" if peer == "here" else "| | |", end="")
        print(" |" if peer == "NeMo" else f" {_difference(task, peers, folder)} |", flush=True)
    if len(best) == 2:
        theirs, ours = best.values()
        ratios = " | ".join(f"{theirs[key] / ours[key]:.2f}" for key in (*COLUMNS, "peak"))
        print(f"| {task} | NeMo / here | {ratios} | | | |", flush=True)


def _difference(task: str, peers: dict[str, str], folder: Path) -> str:
    outputs = [np.load(_output(peer, task, folder)) for peer in peers]
    return f"{max(float(np.abs(output - outputs[-1]).max()) for output in outputs):.1e}" if len(outputs) > 1 else ""


def _prepare(folder: Path, layers: int | None, seconds: float) -> dict[str, float]:
    """Write the models and the recording, and return the floating-point operations of each task."""
    import soundfile
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    from sortformer.checkpoint.nemo_export import write_nemo

    samples, _ = soundfile.read(DEMO, dtype="float32")
    np.save(folder / "wave.npy", np.resize(samples, round(seconds * RATE)))
    for generation in ("v1", "v2"):
        write_nemo(folder / f"{generation}.nemo", published(generation, layers))
    operations = {}
    for task in TASKS:
        run, wave = _here(task, folder)(), torch.from_numpy(np.load(folder / "wave.npy"))
        # The counter counts the products of attention only if attention is not fused.
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            run(wave)
        operations[task] = float(counter.get_total_flops())
    return operations


def _gemm_rate() -> float:
    """Return the floating-point operations per second of a product of two float32 matrices, the best of several."""
    import torch

    size = 2048
    left, right = torch.randn(size, size), torch.randn(size, size)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        torch.mm(left, right)
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / min(seconds)


def published(generation: str, layers: int | None = None) -> Any:
    """Return a model like NVIDIA's v1 or v2, with random weights and ``layers`` per stack (None: as published)."""
    import torch

    from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
    from sortformer.model import Sortformer

    features, depth = {
        "v1": (FeatureConfig(80, "per_feature", "peak"), 18),
        "v2": (FeatureConfig(128, gain="peak"), 17),
    }[generation]
    encoder = EncoderConfig(
        subsampling_channels=256,
        dim=512,
        layers=layers or depth,
        heads=8,
        ff_dim=2048,
        conv_norm="batch",
        position="xl",
        input_scale=True,
    )
    head = HeadConfig(
        layers=layers or 18,
        heads=8,
        ff_dim=768,
        norm="post",
        position="none",
        permutation="none",
        estimate_layers=(),
    )
    torch.manual_seed(0)
    return Sortformer(ModelConfig(features, encoder, head, labelling="nemo")).eval()


def _measure(peer: str, task: str, folder: Path) -> dict[str, float]:
    """Return the seconds to import, load and run, the peak memory (MiB) of the process, and the rate of products."""
    started = time.perf_counter()
    load = _nemo(task, folder) if peer == "NeMo" else _here(task, folder)
    import torch

    torch.set_flush_denormal(True)
    imported = time.perf_counter()
    run = load()
    loaded = time.perf_counter()
    wave = torch.from_numpy(np.load(folder / "wave.npy"))
    begun = time.perf_counter()
    with torch.inference_mode():
        probs = run(wave)
    ended = time.perf_counter()
    np.save(_output(peer, task, folder), probs)
    return {
        "import": imported - started,
        "load": loaded - imported,
        "start-up": loaded - started,
        "forward": ended - begun,
        "peak": peak_mib(),
        "rate": _gemm_rate(),
    }


def _output(peer: str, task: str, folder: Path) -> Path:
    return folder / f"{peer} {task}.npy"


def _here(task: str, folder: Path) -> Callable[[], Callable[[Any], np.ndarray]]:
    """Import this package; return a function that loads a model and returns a function from a wave (N,) to (T, S)."""
    from sortformer import checkpoint
    from sortformer.config.stream import STREAM_PRESETS
    from sortformer.streaming import Session, stream_probabilities

    generation, preset = TASKS[task]

    def load() -> Callable[[Any], np.ndarray]:
        model, _ = checkpoint.load(folder / f"{generation}.nemo")
        if preset is None:
            return lambda wave: model(wave[None]).probs[0].numpy()
        session = Session(model, STREAM_PRESETS[f"nvidia-{preset}"])
        return lambda wave: stream_probabilities(session, [wave.numpy()])

    return load


def _nemo(task: str, folder: Path) -> Callable[[], Callable[[Any], np.ndarray]]:
    """Import NeMo; return a function like that of ``_here``."""
    import torch
    from nemo.collections.asr.models import SortformerEncLabelModel

    generation, preset = TASKS[task]
    sizes = {"30.4s": (340, 40, 1, 40, 300, 188), "10s": (124, 1, 1, 124, 124, 188)}

    def load() -> Callable[[Any], np.ndarray]:
        path = str(folder / f"{generation}.nemo")
        model = SortformerEncLabelModel.restore_from(path, map_location="cpu").eval()
        if preset is not None:
            model.streaming_mode = True
            part = model.sortformer_modules
            part.chunk_len, part.chunk_right_context, part.chunk_left_context = sizes[preset][:3]
            part.fifo_len, part.spkcache_update_period, part.spkcache_len = sizes[preset][3:]
        return lambda wave: model(wave[None], torch.tensor([len(wave)]))[0].numpy()

    return load


if __name__ == "__main__":
    main()

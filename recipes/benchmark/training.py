"""Measure the speed of training by stage: simulation, features, forward and backward, the optimiser.

Simulation is drafting, in workers, and rendering, in workers for a CPU and on the accelerator otherwise.

python recipes/benchmark/training.py [RECIPE.toml] [--device cpu] [--steps 10]

The batches are those of the recipe's last stage. Without a recipe: 4 conversations of 30 s from synthetic voices.
"""

import argparse
import runpy
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from sortformer.config.data import DataConfig
from sortformer.config.train import StageConfig, TrainConfig
from sortformer.data import Batches, Draft, Sources
from sortformer.device import device_named
from sortformer.simulate import Conversations
from sortformer.train.initial import initial_checkpoint
from sortformer.train.processes import Processes
from sortformer.train.state import TrainState
from sortformer.train.step import take_step

DRAFTING, RENDERING, STEP = "drafting", "rendering", "a step, features included"
VOICES = Path(__file__).resolve().parents[1] / "overfit_one/make_voices.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path, nargs="?")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_flush_denormal(True)
    device = device_named(arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        config = one_stage(
            TrainConfig.read(arguments.recipe) if arguments.recipe else synthetic(Path(folder)), arguments
        )
        sources = Sources.load(config.data)
        initial, _ = initial_checkpoint(config)
        config = replace(config, model=initial.model.config)
        made = Batches(sources, config, initial.model.config)
        state = TrainState.start(initial.model, config.optimizer, None, device)
        show(measure(made, state, config, device, arguments.steps), config.stages[0], device)
        with FlopCounterMode(display=False) as counter:
            take_step(state, [made[0]], config, Processes(device))
        print(f"arithmetic of a step: {counter.get_total_flops() / 1e9:.0f} GFLOP of matrix products and convolutions")


def synthetic(folder: Path) -> TrainConfig:
    """Return a run that needs no data."""
    runpy.run_path(str(VOICES))["main"](folder)
    return TrainConfig(DataConfig(str(folder), cache=str(folder / "cache")), (StageConfig(1, 30.0, 4),), steps=1)


def one_stage(config: TrainConfig, arguments: argparse.Namespace) -> TrainConfig:
    """Return the run with its last stage only, without streams, and with as many steps as are measured."""
    steps = arguments.steps + 2  # one to warm up, one to count
    stage = replace(config.stages[-1], until_step=steps, streamed_probability=0.0)
    return replace(config, steps=steps, stages=(stage,), teacher=None)


def measure(
    made: Batches, state: TrainState, config: TrainConfig, device: torch.device, steps: int
) -> dict[str, tuple[float, float]]:
    """Return CPU and wall seconds per step of each stage, after a warm-up step."""
    alone = Processes(device)
    spent: dict[str, list[tuple[float, float]]] = {}
    draft: list[Draft] = []
    batch: list[Conversations] = []

    def features() -> None:
        with torch.no_grad():
            state.model.features(batch[0].wave.to(device), batch[0].num_samples.to(device))

    for step in range(steps + 1):
        stages: dict[str, Callable[[], object]] = {
            DRAFTING: lambda step=step: draft.__setitem__(slice(None), [made.draft(step)]),
            RENDERING: lambda: batch.__setitem__(slice(None), [made.finish(draft[0], device)]),
            "features": features,
            STEP: lambda: take_step(state, batch, config, alone),
        }
        for name, work in stages.items():
            cpu, wall = time.process_time(), time.perf_counter()
            work()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if step:
                spent.setdefault(name, []).append((time.process_time() - cpu, time.perf_counter() - wall))
    return {name: (mean([cpu for cpu, _ in rows]), mean([wall for _, wall in rows])) for name, rows in spent.items()}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def show(spent: dict[str, tuple[float, float]], stage: StageConfig, device: torch.device) -> None:
    """Print a row per stage, and the number of workers needed."""
    audio_s = stage.batch_size * stage.duration_s
    print(f"{stage.batch_size} x {stage.duration_s:g} s on {device}, torch with {torch.get_num_threads()} threads\n")
    print("| stage | CPU s | wall s | conversations a second | audio hours an hour |")
    print("|---|---:|---:|---:|---:|")
    for name, (cpu, wall) in spent.items():
        print(f"| {name} | {cpu:.4f} | {wall:.4f} | {stage.batch_size / wall:.1f} | {audio_s / wall:.0f} |")
    theirs = [DRAFTING, RENDERING] if device.type == "cpu" else [DRAFTING]
    busy = sum(spent[name][0] for name in theirs)
    print(f"\nworkers that keep up: {busy / spent[STEP][1]:.2f} (their CPU seconds in a second of steps)")


if __name__ == "__main__":
    main()

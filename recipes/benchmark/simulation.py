"""Measure the speed of simulation, per stage, on one core.

python recipes/benchmark/simulation.py BANK_FOLDER CACHE_FOLDER [RTTM_FOLDER ...] [--recipe RECIPE.toml]

The conversations follow the recipe's ``[simulation]``, or the defaults: once with bursts of noise that are made for
each of them, once with those of a pool.
"""

import argparse
import cProfile
import os
import pstats
import time
from pathlib import Path

import torch

from sortformer.config.simulation import SimulationConfig
from sortformer.config.train import TrainConfig
from sortformer.simulate import BurstPool, Pauses, Rooms, Simulator, TurnPatterns, VoiceBank

BURSTS = 300
STAGES = {
    "voices and babble played (events.py)": ("events.py", "played"),
    "turns replayed (turn_patterns.py)": ("turn_patterns.py", "window"),
    "turns drawn (outline.py)": ("outline.py", "parametric_outline"),
    "channels drawn (channel.py)": ("channel.py", "draw_channel"),
    "voices and rooms convolved": ("render.py", "_add_path"),
    "rooms to spectra": ("render.py", "_through_rooms"),
    "noise drawn and swelled": ("render.py", "_swell"),
    "blocks added up": ("render.py", "_overlap_add"),
    "bursts made": ("render.py", "_add_bursts"),
    "recorder": ("render.py", "_record"),
    "all of render.py": ("render.py", "render"),
    "all": ("simulator.py", "batch"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("turns", type=Path, nargs="*")
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--repeat", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    begun = time.perf_counter()
    bank = VoiceBank.load(arguments.bank, cache=arguments.cache)
    print(f"bank of {len(bank.voices)} voices loaded in {time.perf_counter() - begun:.2f} s")
    begun = time.perf_counter()
    rooms = Rooms.make(300, cache=arguments.cache)
    print(f"300 rooms loaded in {time.perf_counter() - begun:.2f} s")
    patterns = TurnPatterns.from_rttm(arguments.turns, exclude=("EN200*",)) if arguments.turns else None
    begun = time.perf_counter()
    pool = BurstPool.make(Pauses(bank), BURSTS, cache=arguments.cache)
    print(f"{BURSTS} bursts of each kind loaded in {time.perf_counter() - begun:.2f} s")
    config = TrainConfig.read(arguments.recipe).simulation if arguments.recipe else SimulationConfig()

    for name, bursts in (("bursts made for each conversation", None), ("bursts of a pool", pool)):
        simulator = Simulator(bank, config, patterns, rooms, bursts=bursts)
        print(f"\n{name}\n{'batch':>12}  {'CPU s':>7}  {'wall s':>7}  {'x real time (CPU)':>18}")
        for batch_size, duration_s in ((16, 10.0), (4, 40.0), (2, 80.0), (1, 160.0)):
            cpu, wall = measure(simulator, batch_size, duration_s, arguments.repeat)
            speed = batch_size * duration_s / cpu
            print(f"{batch_size:>3} x {duration_s:4.0f} s  {cpu:7.3f}  {wall:7.3f}  {speed:18.0f}")
        show_stages(simulator, arguments.repeat)


def measure(simulator: Simulator, batch_size: int, duration_s: float, repeat: int) -> tuple[float, float]:
    """Return mean CPU and wall seconds per batch, after a warm-up batch."""
    generator = torch.Generator().manual_seed(0)
    simulator.batch(generator, batch_size, duration_s)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(repeat):
        simulator.batch(generator, batch_size, duration_s)
    return (time.process_time() - cpu) / repeat, (time.perf_counter() - wall) / repeat


def show_stages(simulator: Simulator, repeat: int) -> None:
    """Print the CPU milliseconds of each stage for four conversations of 40 s."""
    profile = cProfile.Profile(time.process_time)
    generator = torch.Generator().manual_seed(0)
    profile.enable()
    for _ in range(repeat):
        simulator.batch(generator, 4, 40.0)
    profile.disable()
    spent = {
        (os.path.basename(file), function): cumulative
        for (file, _, function), (_, _, _, cumulative, _) in pstats.Stats(profile).stats.items()  # pyright: ignore[reportAttributeAccessIssue]
    }
    print("\nCPU ms for 160 s (4 x 40 s), profiled")
    for name, key in STAGES.items():
        print(f"{name:36s} {1000 * spent.get(key, 0.0) / repeat:7.1f}")


if __name__ == "__main__":
    main()

"""Write recordings to tune post-processing on: training voices at speeds that training does not use, as in the recipe.

python tuning_set.py RECIPE NOISE_RECIPE OUT_FOLDER [--count 24]

The channels, including the noise, are those of NOISE_RECIPE. The dev sets have other voices, rooms and turns.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from dev_sets import write

from sortformer.config.train import TrainConfig
from sortformer.data import Sources

SPEEDS = (0.95, 1.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("noise", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=24, help="of 30 s, and as many of 60 s")
    arguments = parser.parse_args()
    config = TrainConfig.read(arguments.recipe)
    simulation = replace(config.simulation, channel=TrainConfig.read(arguments.noise).simulation.channel)
    simulator = Sources.load(replace(config.data, speeds=SPEEDS)).simulator(simulation, config.model)
    generator = torch.Generator().manual_seed(11)
    for name, duration_s in (("short", 30.0), ("long", 60.0)):
        write(arguments.out, name, simulator.batch(generator, arguments.count, duration_s))


if __name__ == "__main__":
    main()

"""Write recordings to tune post-processing on: training voices at speeds that training does not use, as in the recipe.

python tuning_set.py RECIPE NOISE_RECIPE OUT_FOLDER

The channels, and with them the noise, are those of NOISE_RECIPE. Nothing of this is in the dev sets, neither voice nor
room nor turns.
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from dev_sets import write

from sortformer.config.train import TrainConfig
from sortformer.data import Sources

SPEEDS = (0.95, 1.05)
COUNT = 24


def main(recipe: Path, noise: Path, out: Path) -> None:
    config = TrainConfig.read(recipe)
    simulation = replace(config.simulation, channel=TrainConfig.read(noise).simulation.channel)
    simulator = Sources.load(replace(config.data, speeds=SPEEDS)).simulator(simulation, config.model)
    generator = torch.Generator().manual_seed(11)
    for name, duration_s in (("short", 30.0), ("long", 60.0)):
        write(out, name, simulator.batch(generator, COUNT, duration_s))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*map(Path, sys.argv[1:]))

"""The batch of each step, a function of the run's seed and the step alone: so a run resumes where it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from sortformer.config.model import ModelConfig
from sortformer.config.train import StageConfig, TrainConfig
from sortformer.data.recordings import Crops
from sortformer.data.sources import Sources
from sortformer.simulate import Conversations, Simulator
from sortformer.simulate.rerecord import rerecord

__all__ = ["Batches", "batches"]


class Batches(Dataset[Conversations]):
    """The conversations of every step: each is simulated or a crop of a real recording, drawn by weight.

    Raises:
        InputError: if the bank has too few voices, or no crop of the recordings fits into the model's slots.
    """

    def __init__(self, sources: Sources, config: TrainConfig, model: ModelConfig) -> None:
        self.config = config
        self.shares = np.array(config.data.shares)
        self.simulators: dict[StageConfig, Simulator] = {}
        self.crops: dict[float, list[Crops]] = {}
        for stage in config.stages:
            if self.shares[0]:
                self.simulators[stage] = sources.simulator(stage.simulation(config.simulation), model)
            if stage.duration_s not in self.crops:
                self.crops[stage.duration_s] = [
                    Crops(recordings, stage.duration_s, config.simulation.num_slots, model)
                    for recordings in sources.recordings
                ]

    def __len__(self) -> int:
        return self.config.steps

    def __getitem__(self, step: int) -> Conversations:
        """Make the conversations of ``step``."""
        step = 0 if self.config.repeat else step
        stage = self.config.stage(step)
        rows = range(stage.batch_size)
        made: dict[int, Conversations] = {}
        simulated: list[int] = []
        with _one_thread():
            for row in rows:
                rng = np.random.default_rng([self.config.seed % 2**64, step, row])
                source = int(rng.choice(len(self.shares), p=self.shares))
                if source:
                    made[row] = self._crop(stage, source - 1, rng)
                else:
                    simulated.append(row)
            if simulated:
                generator = torch.Generator().manual_seed(self.config.seed * 1_000_003 + step)
                batch = self.simulators[stage].batch(generator, stage.batch_size, stage.duration_s, rows=simulated)
                made |= {row: _rows(batch, [index]) for index, row in enumerate(simulated)}
        return _joined([made[row] for row in rows])

    def _crop(self, stage: StageConfig, number: int, rng: np.random.Generator) -> Conversations:
        """Draw a crop of one of the recordings, and perhaps another channel for it."""
        crops = self.crops[stage.duration_s][number]
        made = crops.read(crops.draw(rng))
        if rng.random() < self.config.data.recordings[number].channel_probability:
            channel = stage.simulation(self.config.simulation).channel
            made = rerecord(made, channel, rng)
        return made


def batches(sources: Sources, config: TrainConfig, model: ModelConfig, first_step: int) -> Iterator[Conversations]:
    """Yield the batches for a model from ``first_step`` to the end of the run, prepared ahead by worker processes."""
    loader = DataLoader(
        Batches(sources, config, model),
        batch_size=None,
        sampler=range(first_step, config.steps),
        num_workers=config.workers,
        prefetch_factor=4 if config.workers else None,
        generator=torch.Generator(),  # of seeds that nobody uses; the global one is not ours to draw from
    )
    yield from loader


def _rows(batch: Conversations, rows: list[int]) -> Conversations:
    return Conversations(*(getattr(batch, field.name)[rows] for field in fields(batch)))


def _joined(parts: list[Conversations]) -> Conversations:
    return Conversations(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Conversations)))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread, as data workers do: where threads share out an array, its last bits depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

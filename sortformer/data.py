"""Batches for training: which conversations step ``n`` of a run sees."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, Dataset

from sortformer.config.model import ModelConfig
from sortformer.config.simulation import SimulationConfig
from sortformer.config.train import DataConfig, TrainConfig
from sortformer.simulate import Conversations, Rooms, Simulator, TurnPatterns, VoiceBank

__all__ = ["SimulatedBatches", "Sources", "batches"]


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """What conversations are made of: voices, real turn-taking, rooms."""

    bank: VoiceBank
    patterns: TurnPatterns | None
    rooms: Rooms | None

    @classmethod
    def load(cls, data: DataConfig, split: str = "train") -> "Sources":
        """Load what a recipe names; voices of another split than "train" keep their own speed and are all used."""
        bank = VoiceBank.load(data.bank, split, data.speeds if split == "train" else (1.0,), data.cache)
        if data.pool is not None and split == "train":
            bank = bank.pool(data.pool, data.pool_seed)
        patterns = None
        for folder in data.turns:
            more = TurnPatterns.from_rttm_folder(folder, data.exclude)
            patterns = more if patterns is None else patterns + more
        rooms = Rooms.make(data.rooms, cache=data.cache) if data.rooms else None
        return cls(bank, patterns, rooms)

    def simulator(self, config: SimulationConfig, model: ModelConfig) -> Simulator:
        """Return a simulator of these sources, with targets for a model."""
        return Simulator(self.bank, config, self.patterns, self.rooms, model)


class SimulatedBatches(Dataset[Conversations]):
    """The batch of each step, a function of the run's seed and the step alone: so a run resumes where it was."""

    def __init__(self, sources: Sources, config: TrainConfig, model: ModelConfig) -> None:
        self.config = config
        self.simulators = {
            stage: sources.simulator(stage.simulation(config.simulation), model) for stage in config.stages
        }

    def __len__(self) -> int:
        return self.config.steps

    def __getitem__(self, step: int) -> Conversations:
        """Make the conversations of ``step``."""
        step = 0 if self.config.repeat else step
        stage = self.config.stage(step)
        generator = torch.Generator().manual_seed(self.config.seed * 1_000_003 + step)
        with _one_thread():
            return self.simulators[stage].batch(generator, stage.batch_size, stage.duration_s)


def batches(sources: Sources, config: TrainConfig, model: ModelConfig, first_step: int) -> Iterator[Conversations]:
    """Yield the batches for a model from ``first_step`` to the end of the run, prepared ahead by worker processes."""
    loader = DataLoader(
        SimulatedBatches(sources, config, model),
        batch_size=None,
        sampler=range(first_step, config.steps),
        num_workers=config.workers,
        prefetch_factor=4 if config.workers else None,
        generator=torch.Generator(),  # of seeds that nobody uses; the global one is not ours to draw from
    )
    yield from loader


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread, as data workers do: where threads share out an array, its last bits depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

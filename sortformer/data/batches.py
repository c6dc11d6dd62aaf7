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
from sortformer.errors import ConfigError, SortformerError
from sortformer.simulate import Conversations, Simulator
from sortformer.simulate.rerecord import rerecord

__all__ = ["Batches", "batches", "part_rows"]


class Batches(Dataset[Conversations]):
    """The conversations of every step: each is simulated or a crop of a real recording, drawn by weight.

    A batch comes in ``parts``, which together hold the same conversations whatever their number: part p of step n is
    item ``n * parts + p``.

    Raises:
        ConfigError: if a batch has fewer conversations than parts.
        InputError: if the bank has too few voices, or no crop of the recordings fits into the model's slots.
    """

    def __init__(self, sources: Sources, config: TrainConfig, model: ModelConfig, parts: int = 1) -> None:
        smallest = min(stage.batch_size for stage in config.stages)
        if smallest < parts:
            raise ConfigError(
                f"a batch of {smallest} cannot be shared out to {parts} micro-batches of all processes: "
                "raise batch_size, or train with less accumulation or fewer processes"
            )
        self.config = config
        self.parts = parts
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
        return self.config.steps * self.parts

    def __getitem__(self, index: int) -> Conversations:
        """Make the conversations of one part of one step."""
        step, part = divmod(index, self.parts)
        step = 0 if self.config.repeat else step
        stage = self.config.stage(step)
        rows = part_rows(stage.batch_size, part, self.parts)
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


def part_rows(batch_size: int, part: int, parts: int) -> range:
    """Return which conversations of a batch are in one of its parts, which differ by one in size at most."""
    return range(part * batch_size // parts, (part + 1) * batch_size // parts)


def batches(
    sources: Sources, config: TrainConfig, model: ModelConfig, first_step: int, rank: int = 0, processes: int = 1
) -> Iterator[tuple[Conversations, ...]]:
    """Return what one process sees of each batch from ``first_step`` to the end of the run, in its micro-batches.

    They are prepared ahead by worker processes.

    Raises:
        ConfigError, InputError: as ``Batches``; and from the iterator, when a recording cannot be read.
    """
    parts = config.accumulate * processes
    own = range(rank * config.accumulate, (rank + 1) * config.accumulate)
    loader = DataLoader(
        _Errands(Batches(sources, config, model, parts)),
        batch_size=None,
        sampler=[step * parts + part for step in range(first_step, config.steps) for part in own],
        num_workers=config.workers,
        prefetch_factor=4 if config.workers else None,
        generator=torch.Generator(),  # of seeds that nobody uses; the global one is not ours to draw from
    )

    def steps() -> Iterator[tuple[Conversations, ...]]:
        made = map(_delivered, loader)
        for _ in range(first_step, config.steps):
            yield tuple(next(made) for _ in own)

    return steps()


class _Errands(Dataset[Conversations | SortformerError]):
    """Batches, or why there is none: what a worker process raises would come wrapped in its traceback."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def __getitem__(self, index: int) -> Conversations | SortformerError:
        try:
            return self._batches[index]
        except SortformerError as error:
            return error


def _delivered(found: Conversations | SortformerError) -> Conversations:
    if isinstance(found, SortformerError):
        raise found
    return found


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

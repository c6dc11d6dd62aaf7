"""The batch of each step, which depends on the run's seed and the step alone, so that a run can be resumed."""

import multiprocessing as mp
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.util import Finalize
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from sortformer.config.model import ModelConfig
from sortformer.config.train import StageConfig, TrainConfig
from sortformer.data.recordings import Crops
from sortformer.data.sources import Sources
from sortformer.errors import ConfigError, InputError, SortformerError, first_line
from sortformer.seeds import seed_of
from sortformer.simulate import Conversations, Simulator
from sortformer.simulate.rerecord import rerecord
from sortformer.simulate.simulator import Script

__all__ = ["Batches", "Draft", "batches", "killed_workers", "part_rows"]

# Python 3.14 would start workers from a fork server, which lives until all of them end, and torch's workers live until
# their parent ends: if the training process were killed, they would stay forever. Forked, they share the bank's memory.
_START = "fork" if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """One part of a step's batch, whose simulated conversations are not rendered yet.

    Attributes:
        stage: the stage of the run.
        rows: the rows of the batch in this part.
        crops: the conversations cropped from real recordings, by row.
        script: the script of the other rows, in order; None if there are none.
    """

    stage: StageConfig
    rows: range
    crops: Mapping[int, Conversations]
    script: Script | None


class Batches:
    """The conversations of every step: each is simulated or a crop of a real recording, drawn by weight.

    A batch is split into ``parts``, whose number does not change its conversations: part p of step n is item
    ``n * parts + p``.

    Raises:
        ConfigError: if a batch has fewer conversations than parts.
        InputError: if the bank has too few voices, or no crop of the recordings has few enough speakers.
    """

    def __init__(self, sources: Sources, config: TrainConfig, model: ModelConfig, parts: int = 1) -> None:
        smallest = min(stage.batch_size for stage in config.stages)
        if smallest < parts:
            raise ConfigError(
                f"a batch of {smallest} cannot be split into the {parts} micro-batches of all processes: "
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

    def __getitem__(self, index: int) -> Conversations:
        """Make the conversations of one part of one step, on the CPU."""
        return self.finish(self.draft(index))

    def draft(self, index: int) -> Draft:
        """Prepare one part of one step, up to rendering: the work that is always done on the CPU."""
        step, part = divmod(index, self.parts)
        step = 0 if self.config.repeat else step
        stage = self.config.stage(step)
        rows = part_rows(stage.batch_size, part, self.parts)
        crops: dict[int, Conversations] = {}
        simulated: list[int] = []
        with _one_thread():
            for row in rows:
                rng = np.random.default_rng([self.config.seed, step, row])
                source = int(rng.choice(len(self.shares), p=self.shares))
                if source:
                    crops[row] = self._crop(stage, source - 1, rng)
                else:
                    simulated.append(row)
            generator = torch.Generator().manual_seed(seed_of(self.config.seed, step))
            script = (
                self.simulators[stage].script(generator, stage.batch_size, stage.duration_s, simulated)
                if simulated
                else None
            )
        return Draft(stage, rows, crops, script)

    def finish(self, draft: Draft, device: str | torch.device = "cpu") -> Conversations:
        """Return the conversations of a draft on a device, which renders the simulated ones."""
        made = {row: crop.to(device) for row, crop in draft.crops.items()}
        if draft.script is not None:
            with _one_thread():
                batch = self.simulators[draft.stage].render(draft.script, device)
            simulated = [row for row in draft.rows if row not in draft.crops]
            made |= zip(simulated, batch.split(), strict=True)
        return Conversations.joined([made[row] for row in draft.rows])

    def _crop(self, stage: StageConfig, number: int, rng: np.random.Generator) -> Conversations:
        """Draw a crop from a manifest, by its ``number``, and with some probability another channel for it."""
        crops = self.crops[stage.duration_s][number]
        made = crops.read(crops.draw(rng))
        if rng.random() < self.config.data.recordings[number].channel_probability:
            channel = stage.simulation(self.config.simulation).channel
            made = rerecord(made, channel, rng)
        return made


def part_rows(batch_size: int, part: int, parts: int) -> range:
    """Return the rows of a batch in one of its parts; the sizes of parts differ by one at most."""
    return range(part * batch_size // parts, (part + 1) * batch_size // parts)


def batches(
    sources: Sources,
    config: TrainConfig,
    model: ModelConfig,
    first_step: int,
    rank: int = 0,
    processes: int = 1,
    device: torch.device | None = None,
) -> Iterator[tuple[Conversations, ...]]:
    """Return the micro-batches of one process for each step from ``first_step`` to the end of the run.

    Worker processes prepare them ahead; with a ``device`` they only draft them, and the device renders them when due.

    Raises:
        ConfigError, InputError: as ``Batches``; and from the iterator, if a recording cannot be read.
    """
    parts = config.accumulate * processes
    own = range(rank * config.accumulate, (rank + 1) * config.accumulate)
    dataset = Batches(sources, config, model, parts)
    loader = DataLoader(
        _Errands(dataset.__getitem__ if device is None else dataset.draft),
        batch_size=None,
        sampler=[step * parts + part for step in range(first_step, config.steps) for part in own],
        num_workers=config.workers,
        prefetch_factor=4 if config.workers else None,
        worker_init_fn=_undisturbed_worker() if config.workers else None,
        multiprocessing_context=_START if config.workers else None,
        generator=torch.Generator(),  # for seeds that are not used; the loader would draw them from the global one
    )

    def steps() -> Iterator[tuple[Conversations, ...]]:
        made = map(_delivered, loader)
        if device is not None:
            made = (dataset.finish(draft, device) for draft in made)
        for _ in range(first_step, config.steps):
            yield tuple(next(made) for _ in own)

    return steps()


@contextmanager
def killed_workers() -> Iterator[None]:
    """Turn torch's error for a killed worker, which may be raised at any point, into a sentence.

    Raises:
        InputError: if a worker was killed.
    """
    try:
        yield
    except RuntimeError as error:
        if not re.match(r"DataLoader worker \(.*(is killed by signal: Killed|exited unexpectedly)", str(error)):
            raise
        raise InputError(
            "a process that prepares batches was killed, as happens when memory runs out: lower 'workers' or "
            f"batch_size, and the same command continues from the last state ({first_line(error)})"
        ) from error


def _undisturbed_worker() -> Callable[[int], None]:
    """Return a ``worker_init_fn`` that ignores signals to all processes of a job, which the training process handles.

    It saves its state after the step; a worker that ended before would raise an error in the middle of it. Workers can
    be terminated only once the training process exits.
    """
    ended = mp.RawValue("b", False)
    Finalize(None, partial(setattr, ended, "value", True), exitpriority=0)  # runs before they are terminated
    return partial(_ignore_signals, ended)


def _ignore_signals(ended: Any, _worker: int) -> None:
    for name in ("SIGINT", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):  # Windows has no SIGHUP, others have no SIGBREAK
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0) if ended.value else None)


class _Errands(Dataset[Any]):
    """A dataset that returns errors as items: if a worker raised them, torch would wrap them in its traceback."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self._make = make

    def __getitem__(self, index: int) -> Any:
        try:
            return self._make(index)
        except SortformerError as error:
            return error


def _delivered(found: Any) -> Any:
    if isinstance(found, SortformerError):
        raise found
    return found


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread, as data workers do: the last bits of a result depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

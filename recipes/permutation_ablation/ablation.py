"""Train small models that differ in one thing, cell by cell, and measure what each has learnt.

    python ablation.py OUT [--minutes N] [--seeds 3] [--question arms losses turns]

A cell is a folder of OUT: one arm, pool of training voices, final loss, deep supervision, turn-taking and seed.
Finished cells are skipped and a broken-off one goes on where it was, so the command can be given again until all are
done; ``--minutes`` ends it before a cell is begun too late. At the end, and with ``summary.py OUT`` at any time, the
tables are made of the cells that are finished.

Cells of one pool and seed start from the same encoder, which has learnt to tell the voices of the pool apart, and from
the same draws for the rest; they see the same conversations in the same order and are measured on the same ones.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from summary import BASIC, report

from sortformer import checkpoint
from sortformer.config.data import DataConfig
from sortformer.config.model import ModelConfig
from sortformer.config.train import LossConfig, TrainConfig
from sortformer.data import Sources
from sortformer.metrics.frames import frame_der
from sortformer.model import Sortformer
from sortformer.simulate import Conversations
from sortformer.train import train
from sortformer.train.initial import initial_checkpoint

ARMS = {"none": "none", "label": "label", "A": "hard", "B": "soft", "C": "softsort"}
FINAL_SORT_WEIGHT = {"sort": 1.0, "PIT": 0.0, "hybrid": 0.5}
DEEP_SORT_WEIGHT = {"PIT": 0.0, "sort": 1.0}
REPLAY_PROBABILITY = {"parametric": 0.0, "half": 0.5, "replayed": 1.0}
POOLS = (25, 100, 400)
LOSS_ARMS = ("none", "A")
TURNS_ARMS = ("A",)
QUESTIONS = ("arms", "losses", "turns")
TURNS = Path(__file__).parent / "../../../shared/data/turns"
HELD_OUT = (str(TURNS / "ami/dev"), str(TURNS / "voxconverse/test"))
ROWS = 24  # conversations measured at once
SHORTEST_FRAMES = 3  # who is active for less, 0.24 s, does not count as a speaker
ALIKE = 0.01  # relative difference of parameters that arms may have


@dataclass(frozen=True, slots=True)
class Cell:
    """One training run."""

    arm: str
    pool: int
    loss: str
    deep: str
    turns: str
    seed: int

    @property
    def name(self) -> str:
        """The folder of the cell."""
        return f"{self.arm}-pool{self.pool}-{self.loss}-deep_{self.deep}-{self.turns}-seed{self.seed}"

    def encoder(self, recipe: TrainConfig) -> TrainConfig:
        """Return how the encoder is trained that this cell starts from."""
        return replace(recipe, data=self._data(recipe), seed=self.seed)

    def training(self, recipe: TrainConfig, model: ModelConfig, init: Path | None = None) -> TrainConfig:
        """Return the recipe with what this cell changes of it; the seed draws the pool, too."""
        deep_weight = 0.0 if self.deep == "off" else recipe.loss.deep_weight
        return replace(
            recipe,
            data=self._data(recipe),
            model=replace(model, head=replace(model.head, permutation=ARMS[self.arm])),
            simulation=replace(recipe.simulation, replay_probability=REPLAY_PROBABILITY[self.turns]),
            loss=LossConfig(FINAL_SORT_WEIGHT[self.loss], deep_weight, DEEP_SORT_WEIGHT.get(self.deep, 0.0)),
            seed=self.seed,
            init=None if init is None else str(init),
        )

    def _data(self, recipe: TrainConfig) -> DataConfig:
        return replace(recipe.data, pool=self.pool, pool_seed=self.seed)


@dataclass(frozen=True, slots=True)
class Recipes:
    """How the encoder and what stands on it are trained."""

    encoder: TrainConfig
    cell: TrainConfig
    model: ModelConfig

    @classmethod
    def read(cls, folder: Path) -> "Recipes":
        """Read the two recipes; the model is that of the encoder's."""
        encoder = TrainConfig.read(folder / "encoder.toml")
        return cls(encoder, TrainConfig.read(folder / "cell.toml"), encoder.model or ModelConfig())


def plan(questions: Sequence[str], arms: Sequence[str], pools: Sequence[int], seeds: int) -> list[Cell]:
    """Return the cells in the order of training: all of one seed before the next, so that early tables are whole."""
    middle = pools[len(pools) // 2]
    losses = [(loss, deep, BASIC[2]) for loss in FINAL_SORT_WEIGHT for deep in ("off", *DEEP_SORT_WEIGHT)]
    turns = [(*BASIC[:2], turns) for turns in REPLAY_PROBABILITY]
    cells: dict[Cell, None] = {}
    for seed in range(seeds):
        asked = {
            "arms": [Cell(arm, pool, *BASIC, seed) for pool in pools for arm in arms],
            "losses": [Cell(arm, middle, *kind, seed) for kind in losses for arm in LOSS_ARMS if arm in arms],
            "turns": [Cell(arm, middle, *kind, seed) for kind in turns for arm in TURNS_ARMS if arm in arms],
        }
        cells |= {cell: None for question in questions for cell in asked[question]}
    return list(cells)


def parameters(recipes: Recipes, arms: Sequence[str]) -> dict[str, int]:
    """Return the number of weights of each arm.

    Raises:
        SystemExit: if they differ by more than a hundredth.
    """
    configs = {arm: Cell(arm, 1, *BASIC, 0).training(recipes.cell, recipes.model) for arm in arms}
    sizes = {arm: _size(initial_checkpoint(config).model) for arm, config in configs.items()}
    if max(sizes.values()) > (1 + ALIKE) * min(sizes.values()):
        raise SystemExit(f"the arms differ in size by more than {ALIKE:.0%}: {sizes}")
    return sizes


def run(cell: Cell, recipes: Recipes, out: Path, conversations: int, held_out: Sequence[str]) -> None:
    """Train and measure one cell, and write ``result.json``."""
    folder = out / cell.name
    common = train(cell.encoder(recipes.encoder), out / f"encoder-pool{cell.pool}-seed{cell.seed}")
    started, used = time.perf_counter(), time.process_time()
    fresh = initial_checkpoint(cell.training(recipes.cell, recipes.model)).model
    fresh.encoder.load_state_dict(checkpoint.load(common)[0].encoder.state_dict())
    checkpoint.save(folder / "init", fresh)
    config = cell.training(recipes.cell, recipes.model, folder / "init")
    model, _ = checkpoint.load(train(config, folder))
    # All cells are measured alike: in parametric turn-taking, and in that of recordings which none has seen.
    alike = replace(config, simulation=replace(config.simulation, replay_probability=0.0))
    real = replace(
        config,
        simulation=replace(config.simulation, replay_probability=1.0),
        data=replace(config.data, turns=tuple(held_out), exclude=()),
    )
    places = {"train": (alike, "train"), "dev": (alike, "dev"), "real": (real, "dev")}
    result = {
        "cell": asdict(cell),
        "parameters": _size(model),
        "steps": config.steps,
        **{name: measure(model.eval(), *where, conversations) for name, where in places.items()},
        "wall_s": time.perf_counter() - started,
        "cpu_s": time.process_time() - used,
    }
    (folder / "result.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    (folder / "state.pt").unlink()


def _size(model: Sortformer) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@torch.inference_mode()
def measure(model: Sortformer, config: TrainConfig, split: str, count: int) -> dict[str, list[float]]:
    """Return what is counted of each conversation of a split, by name."""
    simulation = config.stages[-1].simulation(config.simulation)
    simulator = Sources.load(config.data, split).simulator(simulation, model.config)
    generator = torch.Generator().manual_seed(1)
    found: dict[str, list[float]] = {}
    for first in range(0, count, ROWS):
        batch = simulator.batch(generator, min(ROWS, count - first), config.stages[-1].duration_s)
        for row in _rows(model, batch):
            for name, value in row.items():
                found.setdefault(name, []).append(value)
    return found


def _rows(model: Sortformer, batch: Conversations) -> Iterator[dict[str, float]]:
    probs = model(batch.wave, batch.num_samples).probs.numpy()
    for row, target in zip(probs, batch.activity.numpy(), strict=True):
        best, in_order = frame_der(row, target), frame_der(row, target, "sorted")
        speech = target.any(axis=1)
        yield {
            "total": best.total,
            "errors": best.errors,
            "confusion": best.confusion,
            "errors_in_order": in_order.errors,
            "order_right": float(order_right(row > 0.5, target > 0.5)),
            "count_right": float(_count(row > 0.5) == _count(target > 0.5)),
            "one_speaker_errors": frame_der(speech[:, None], target).errors,
        }


def order_right(active: np.ndarray, target: np.ndarray) -> bool:
    """Whether each reference speaker is matched best by the slot of the same number; (T, S) bool, in arrival order."""
    together = active.T.astype(np.float64) @ target
    slot = np.empty(target.shape[1], dtype=int)
    slots, speakers = linear_sum_assignment(together, maximize=True)
    slot[speakers] = slots
    return all(slot[k] == k and together[k, k] > 0 for k in np.flatnonzero(target.any(axis=0)))


def _count(active: np.ndarray) -> int:
    return int((active.sum(axis=0) >= SHORTEST_FRAMES).sum())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipes", type=Path, default=Path(__file__).parent, help="encoder.toml and cell.toml")
    parser.add_argument("--question", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), dest="questions")
    parser.add_argument("--arms", nargs="+", choices=tuple(ARMS), default=list(ARMS))
    parser.add_argument("--pools", nargs="+", type=int, default=list(POOLS), help="speakers to train on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--conversations", type=int, default=240, help="measured in each split")
    parser.add_argument("--held-out", nargs="+", default=list(HELD_OUT), help="RTTM folders of turns to measure in")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no cell after so long")
    options = parser.parse_args(arguments)
    recipes = Recipes.read(options.recipes)
    print("weights of each arm:", parameters(recipes, options.arms), flush=True)
    cells = plan(options.questions, options.arms, options.pools, options.seeds)
    left = [cell for cell in cells if not (options.out / cell.name / "result.json").exists()]
    started = time.perf_counter()
    for number, cell in enumerate(left, len(cells) - len(left) + 1):
        if time.perf_counter() - started > 60 * options.minutes:
            break
        run(cell, recipes, options.out, options.conversations, options.held_out)
        print(f"{number} of {len(cells)}: {cell.name}", flush=True)
    print(report(options.out))


if __name__ == "__main__":
    # Moments that fade to denormal numbers slow a CPU down many times; and cells are too small for two threads.
    torch.set_flush_denormal(True)
    torch.set_num_threads(1)
    main()

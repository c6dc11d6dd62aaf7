"""Train heads that differ in one respect, cell by cell, and evaluate each.

    python ablation.py OUT [--minutes N] [--seeds 3] [--question arms losses turns]

A cell is one head: one arm, pool of training voices, final loss, deep supervision, turn-taking and seed. All are on top
of one frozen model, which encodes each conversation once (``encoded.py``). Finished cells are skipped, so the command
can be repeated until all are done; ``--minutes`` limits the time after which no cell is begun. At the end, and with
``summary.py OUT`` at any time, the finished cells are tabulated.

Cells of the same pool and seed share the same draws: the same conversations in the same order in training, and the same
ones in evaluation.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from encoded import Encoded, encode, kept
from heads import fit, measure
from summary import BASIC, report
from torch import nn

from sortformer import checkpoint
from sortformer.config.model import HeadConfig
from sortformer.config.train import LossConfig, TrainConfig
from sortformer.model import Sortformer
from sortformer.model.head import Head

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
MEASURED_SEED = 0  # of conversations for evaluation; those for training have the cell's, from 1 on
ALIKE = 0.01  # greatest relative difference in the number of weights between arms


@dataclass(frozen=True, slots=True)
class Cell:
    """One head."""

    arm: str
    pool: int
    loss: str
    deep: str
    turns: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the cell's file, without extension."""
        return f"{self.arm}-pool{self.pool}-{self.loss}-deep_{self.deep}-{self.turns}-seed{self.seed}"

    def training(self, recipe: TrainConfig) -> TrainConfig:
        """Return the recipe with the settings of this cell; the seed draws the pool, too."""
        deep_weight = 0.0 if self.deep == "off" else recipe.loss.deep_weight
        return replace(
            recipe,
            data=replace(recipe.data, pool=self.pool, pool_seed=self.seed),
            simulation=replace(recipe.simulation, replay_probability=REPLAY_PROBABILITY[self.turns]),
            loss=LossConfig(FINAL_SORT_WEIGHT[self.loss], deep_weight, DEEP_SORT_WEIGHT.get(self.deep, 0.0)),
            seed=self.seed,
        )

    def head(self, dim: int, config: HeadConfig) -> Head:
        """Return the untrained head of this cell's arm, for an input of ``dim`` channels."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return Head(dim, replace(config, permutation=ARMS[self.arm]))


@dataclass(frozen=True, slots=True)
class Bench:
    """What all cells share: recipe, frozen model, output folder, numbers of conversations, and initial gate."""

    recipe: TrainConfig
    model: Sortformer
    out: Path
    trained: int
    measured: int
    held_out: tuple[str, ...]
    gate: float

    def head(self, cell: Cell) -> Head:
        """Return a cell's untrained head, with the gates of its encodings at ``gate``."""
        if self.recipe.model is None:
            raise SystemExit("the recipe must say in [model.head] what a head is")
        head = cell.head(self.model.config.head.dim, self.recipe.model.head)
        for encoding in head.encodings:
            nn.init.constant_(encoding.get_parameter("gate"), self.gate)
        return head

    def material(self, cell: Cell) -> Encoded:
        """Return the training conversations of a cell."""
        name = f"pool{cell.pool}-{cell.turns}-seed{cell.seed}"
        return self._kept(name, cell.training(self.recipe), "train", self.trained, cell.seed)

    def places(self, cell: Cell) -> dict[str, Encoded]:
        """Return the evaluation conversations by split: the same for all cells, except for the training voices."""
        alike = replace(cell, turns=BASIC[2]).training(self.recipe)
        real = replace(
            alike,
            simulation=replace(alike.simulation, replay_probability=1.0),
            data=replace(alike.data, turns=self.held_out, exclude=()),
        )
        trained = self.material(cell)
        return {
            "fit": Encoded(trained.emb[: self.measured], trained.activity[: self.measured]),
            "train": self._measured(f"pool{cell.pool}-new-seed{cell.seed}", alike, "train"),
            "dev": self._measured("dev", alike, "dev"),
            "real": self._measured("dev-real", real, "dev"),
        }

    def _measured(self, name: str, config: TrainConfig, split: str) -> Encoded:
        return self._kept(name, config, split, self.measured, MEASURED_SEED)

    def _kept(self, name: str, config: TrainConfig, split: str, count: int, seed: int) -> Encoded:
        path = self.out / "encoded" / f"{name}.pt"
        return kept(path, lambda: encode(self.model, config, split, count, seed))


def plan(questions: Sequence[str], arms: Sequence[str], pools: Sequence[int], seeds: int) -> list[Cell]:
    """Return the cells in training order: question by question, and seed by seed."""
    middle = pools[len(pools) // 2]
    losses = [(loss, deep, BASIC[2]) for loss in FINAL_SORT_WEIGHT for deep in ("off", *DEEP_SORT_WEIGHT)]
    turns = [(*BASIC[:2], turns) for turns in REPLAY_PROBABILITY]
    cells: dict[Cell, None] = {}
    for question in questions:
        for seed in range(1, seeds + 1):
            asked = {
                "arms": [Cell(arm, pool, *BASIC, seed) for pool in pools for arm in arms],
                "losses": [Cell(arm, middle, *kind, seed) for kind in losses for arm in LOSS_ARMS if arm in arms],
                "turns": [Cell(arm, middle, *kind, seed) for kind in turns for arm in TURNS_ARMS if arm in arms],
            }
            cells |= dict.fromkeys(asked[question])
    return list(cells)


def parameters(bench: Bench, arms: Sequence[str]) -> dict[str, int]:
    """Return the number of weights of each arm.

    Raises:
        SystemExit: if they differ by more than 1 %.
    """
    sizes = {arm: _size(bench.head(Cell(arm, 1, *BASIC, 0))) for arm in arms}
    if max(sizes.values()) > (1 + ALIKE) * min(sizes.values()):
        raise SystemExit(f"the arms differ in size by more than {ALIKE:.0%}: {sizes}")
    return sizes


def run(cell: Cell, bench: Bench) -> None:
    """Train and measure one cell, and write its result."""
    material, places = bench.material(cell), bench.places(cell)
    started, used = time.perf_counter(), time.process_time()
    head, losses = fit(bench.head(cell), material, cell.training(bench.recipe))
    epoch = max(1, len(material.emb) // bench.recipe.stages[-1].batch_size)
    result = {
        "cell": asdict(cell),
        "parameters": _size(head),
        "steps": len(losses),
        "losses": [sum(part) / len(part) for part in (losses[at : at + epoch] for at in range(0, len(losses), epoch))],
        "first_gate": bench.gate,
        "gates": [float(encoding.gate.detach().mean()) for encoding in head.encodings],
        **{name: measure(head, place) for name, place in places.items()},
        "wall_s": time.perf_counter() - started,
        "cpu_s": time.process_time() - used,
    }
    (bench.out / f"{cell.name}.json").write_text(json.dumps(result) + "\n", encoding="utf-8")


def _size(head: Head) -> int:
    return sum(parameter.numel() for parameter in head.parameters())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parent / "cell.toml")
    parser.add_argument("--model", default=checkpoint.EMBEDDED, help="what the heads stand on")
    parser.add_argument("--question", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), dest="questions")
    parser.add_argument("--arms", nargs="+", choices=tuple(ARMS), default=list(ARMS))
    parser.add_argument("--pools", nargs="+", type=int, default=list(POOLS), help="speakers to train on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trained", type=int, default=512, help="conversations to train on")
    parser.add_argument("--measured", type=int, default=240, help="conversations measured in each split")
    parser.add_argument("--held-out", nargs="+", default=list(HELD_OUT), help="RTTM folders of turns to measure in")
    parser.add_argument("--gate", type=float, default=1.0, help="of the encodings before training; the library's is 0")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no cell after so long")
    options = parser.parse_args(arguments)
    model, _ = checkpoint.load(options.model)
    recipe = TrainConfig.read(options.recipe)
    if options.trained < (size := recipe.stages[-1].batch_size):
        parser.error(f"--trained must be at least {size}, the conversations of a batch, got {options.trained}")
    bench = Bench(recipe, model, options.out, options.trained, options.measured, tuple(options.held_out), options.gate)
    print("weights of each arm:", parameters(bench, options.arms), flush=True)
    cells = plan(options.questions, options.arms, options.pools, options.seeds)
    left = [cell for cell in cells if not (options.out / f"{cell.name}.json").exists()]
    started = time.perf_counter()
    for number, cell in enumerate(left, len(cells) - len(left) + 1):
        if time.perf_counter() - started > 60 * options.minutes:
            break
        run(cell, bench)
        print(f"{number} of {len(cells)}: {cell.name}", flush=True)
    print(report(options.out))


if __name__ == "__main__":
    # Denormals in decaying optimiser moments make a CPU many times slower; cells are too small for two threads.
    torch.set_flush_denormal(True)
    torch.set_num_threads(1)
    main()

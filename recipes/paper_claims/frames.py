"""What heads are trained and measured on: the frozen encoder's frames of simulated conversations, made once."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sortformer.config.train import TrainConfig
from sortformer.data import Sources
from sortformer.model import Sortformer

__all__ = ["STEP_S", "Frames", "coarse", "conversations"]

COARSE = 4
STEP_S = 0.08 * COARSE
_ROWS = 4


@dataclass(frozen=True, slots=True)
class Frames:
    """Recordings as a head hears them, in steps of 320 ms."""

    emb: Tensor  # (B, T, D) float32
    activity: Tensor  # (B, T, S)
    shipped: Tensor  # (B, T, S) the probabilities that the encoder's own head gives

    def crops(self, generator: torch.Generator, rows: int, frames: int) -> "Frames":
        """Return ``frames`` of each of some ``rows`` recordings, drawn with repeats, from anywhere in them."""
        which = torch.randint(len(self.emb), (rows,), generator=generator).tolist()
        first = torch.randint(self.emb.shape[1] - frames + 1, (rows,), generator=generator).tolist()
        return Frames(
            *(
                torch.stack([x[row, start : start + frames] for row, start in zip(which, first, strict=True)])
                for x in (self.emb, self.activity, self.shipped)
            )
        )


def coarse(x: Tensor) -> Tensor:
    """Return the means (B, T // 4, D) of every four frames (B, T, D)."""
    return x[:, : x.shape[1] // COARSE * COARSE].float().unflatten(1, (-1, COARSE)).mean(dim=2)


def conversations(folder: Path, model: Sortformer, recipe: TrainConfig, split: str, count: int) -> Frames:
    """Return ``count`` conversations of the voices of a split; those that the folder has are not made again.

    A speaker is active in a step if in half of it or more.
    """
    path = folder / f"{split}-{count}.pt"
    if not path.exists():
        simulator = Sources.load(recipe.data, split).simulator(recipe.simulation, model.config)
        generator = torch.Generator().manual_seed(recipe.seed)
        made: list[tuple[Tensor, ...]] = []
        with torch.inference_mode():
            for first in range(0, count, _ROWS):
                batch = simulator.batch(generator, min(_ROWS, count - first), recipe.stages[-1].duration_s)
                output = model(batch.wave, batch.num_samples)
                parts = output.emb, batch.activity, output.probs
                made.append(tuple(coarse(part).half() for part in parts))
        folder.mkdir(parents=True, exist_ok=True)
        torch.save([torch.cat(parts) for parts in zip(*made, strict=True)], path)
    emb, activity, shipped = (part.float() for part in torch.load(path, weights_only=True))
    return Frames(emb, (activity >= 0.5).float(), shipped)

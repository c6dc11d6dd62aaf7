"""Conversations encoded by a frozen model up to its first estimate: simulated and encoded once, for all heads."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sortformer.config.train import TrainConfig
from sortformer.data import Sources
from sortformer.masks import length_mask
from sortformer.model import Sortformer

__all__ = ["Encoded", "encode", "kept"]

ROWS = 32  # conversations encoded at once


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Conversations of one length: input of the heads (N, T, D) in float16, and activity (N, T, S) as bool."""

    emb: Tensor
    activity: Tensor

    def rows(self, which: Tensor | slice) -> tuple[Tensor, Tensor, Tensor]:
        """Return the chosen embeddings and activity in float32, and the mask of valid frames (B, T): all of them."""
        emb, activity = self.emb[which].float(), self.activity[which].float()
        return emb, activity, torch.ones(emb.shape[:2], dtype=torch.bool)


@torch.inference_mode()
def encode(model: Sortformer, config: TrainConfig, split: str, count: int, seed: int) -> Encoded:
    """Simulate ``count`` conversations of a recipe's last stage, and encode them with a model.

    The layers before the first estimate, the encoder and the first blocks of the head, involve no permutation.
    """
    stage = config.stages[-1]
    simulator = Sources.load(config.data, split).simulator(stage.simulation(config.simulation), model.config)
    generator = torch.Generator().manual_seed(seed)
    emb, activity = [], []
    for first in range(0, count, ROWS):
        batch = simulator.batch(generator, min(ROWS, count - first), stage.duration_s)
        frames, lengths = model.encoder.subsample(*model.features(batch.wave, batch.num_samples))
        valid = length_mask(lengths, frames.shape[1])
        heard = model.encoder(frames, valid).out
        emb.append(model.head.section(0, model.head.input(heard), valid).out.half())
        activity.append(batch.activity > 0.5)
    return Encoded(torch.cat(emb), torch.cat(activity))


def kept(path: Path, make: Callable[[], Encoded]) -> Encoded:
    """Read the conversations from a file, which is made first if it does not exist."""
    if not path.exists():
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        torch.save({"emb": made.emb, "activity": made.activity}, draft)
        draft.rename(path)
    return Encoded(**torch.load(path, weights_only=True))

"""The training objective: hybrid losses of the output and of the estimates, and auxiliary losses."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sortformer.config.train import LossConfig
from sortformer.grid import FrameGrid
from sortformer.losses import hybrid_loss
from sortformer.model import SortformerOutput
from sortformer.simulate import Conversations
from sortformer.train.count_teacher import count_loss
from sortformer.train.teacher import VoiceTeacher
from sortformer.train.voice_pairs import voice_pairs

__all__ = ["FrameCounts", "frame_counts", "objective"]


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """The frames that the losses of a step are averaged over: all valid ones, and those in which a known voice speaks.

    They are counted over the whole batch, in all micro-batches and processes: in an average of averages, frames of a
    short or silent part would have more weight.
    """

    valid: int
    speech: int


def frame_counts(batch: Conversations, grid: FrameGrid) -> FrameCounts:
    """Count the frames of a batch on a model's grid."""
    known = batch.activity * (batch.voice >= 0)[:, None]
    valid = sum(grid.output_frames(count) for count in batch.num_samples.tolist())
    return FrameCounts(valid, int(known.any(dim=2).sum()))


def objective(
    output: SortformerOutput,
    batch: Conversations,
    config: LossConfig,
    teacher: VoiceTeacher | None,
    teacher_weight: float,
    frames: FrameCounts,
    counts: Tensor | None = None,
    counts_weight: float = 0.0,
) -> dict[str, Tensor]:
    """Return the "loss" to minimise of a batch, or of a part of one that has ``frames`` in all, and its terms.

    The terms, before their weights, are "output", "estimates", "voices" (of the voice teacher), the model's auxiliary
    losses by name and, if they are used, "voice_pairs" and "counts".

    Deep supervision: each estimate adds its own loss, times ``deep_weight``. ``counts`` (B, T, 3) are the estimates of
    the count teacher.
    """
    final = hybrid_loss(output.logits, batch.activity, output.valid, config.sort_weight, frames=frames.valid)
    zero = torch.zeros((), device=final.device)
    estimates = zero
    if config.deep_weight > 0:
        for estimate in output.estimates:
            estimates = estimates + hybrid_loss(
                estimate, batch.activity, output.valid, config.deep_sort_weight, frames=frames.valid
            )
    voices = zero if teacher is None else teacher(output.emb, batch.activity, batch.voice, frames.speech)
    loss = final + config.deep_weight * estimates + teacher_weight * voices
    others = dict(output.losses)
    if config.voice_pairs_weight > 0:
        others["voice_pairs"] = voice_pairs(output.emb, batch.activity, output.valid, config.voice_pairs_threshold)
    weights = {name: config.weight(name) for name in others}
    if counts is not None:
        others["counts"], weights["counts"] = count_loss(output.logits, counts, output.valid), counts_weight
    # Each is an average over this part, so it is weighted by the part's share of the frames.
    share = output.valid.sum() / max(1, frames.valid)
    others = {name: share * other for name, other in others.items()}
    for name, other in others.items():
        loss = loss + weights[name] * other
    return {"loss": loss, "output": final, "estimates": estimates, "voices": voices, **others}

"""The training objective: the output's hybrid loss, the estimates' own, the teacher's, and the model's."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from sortformer.config.train import LossConfig
from sortformer.losses import hybrid_loss
from sortformer.model import SortformerOutput
from sortformer.simulate import Conversations
from sortformer.train.teacher import VoiceTeacher

__all__ = ["Objective", "objective"]


@dataclass(frozen=True, slots=True)
class Objective:
    """The loss to descend and what it is made of."""

    loss: Tensor
    output: Tensor
    estimates: Tensor
    voices: Tensor
    others: Mapping[str, Tensor]
    """The losses that the model's output brings along, by name, before their weights."""


def objective(
    output: SortformerOutput,
    batch: Conversations,
    config: LossConfig,
    teacher: VoiceTeacher | None,
    teacher_weight: float,
) -> Objective:
    """Add up the losses of one batch (deep supervision: each estimate counts ``deep_weight`` times its own loss)."""
    final = hybrid_loss(output.logits, batch.activity, output.valid, config.sort_weight)
    zero = torch.zeros((), device=final.device)
    estimates = zero
    if config.deep_weight > 0:
        for estimate in output.estimates:
            estimates = estimates + hybrid_loss(estimate, batch.activity, output.valid, config.deep_sort_weight)
    voices = zero if teacher is None else teacher(output.emb, batch.activity, batch.voice)
    loss = final + config.deep_weight * estimates + teacher_weight * voices
    for name, other in output.losses.items():
        loss = loss + config.weight(name) * other
    return Objective(loss, final, estimates, voices, output.losses)

"""Train a head on encoded conversations, and count its errors on others."""

from collections.abc import Iterator

import numpy as np
import torch
from encoded import Encoded
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sortformer.config.train import TrainConfig
from sortformer.losses import hybrid_loss
from sortformer.metrics.frames import frame_der
from sortformer.model.head import Head
from sortformer.postprocess import expected_gain
from sortformer.train.schedule import learning_rate
from sortformer.train.state import parameter_groups

__all__ = ["fit", "measure", "order_right"]

ROWS = 64  # conversations measured at once
SHORTEST_FRAMES = 3  # whoever is active for less, 0.24 s, does not count as a speaker


def fit(head: Head, material: Encoded, config: TrainConfig) -> tuple[Head, list[float]]:
    """Train a head; return it with averaged weights, and the loss of its output at each step."""
    optimizer = torch.optim.AdamW(parameter_groups([head], config.optimizer), betas=config.optimizer.betas)
    average = AveragedModel(head, multi_avg_fn=get_ema_multi_avg_fn(config.optimizer.ema_decay))
    chosen = _batches(len(material.emb), config.stages[-1].batch_size, config.seed)
    losses = []
    for step in range(config.steps):
        emb, activity, valid = material.rows(next(chosen))
        found = head(emb, valid)
        output = loss = hybrid_loss(found.logits, activity, valid, config.loss.sort_weight)
        if config.loss.deep_weight:
            for estimate in found.estimates:
                deep = hybrid_loss(estimate, activity, valid, config.loss.deep_sort_weight)
                loss = loss + config.loss.deep_weight * deep
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), config.optimizer.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config.optimizer, step, config.steps)
        optimizer.step()
        average.update_parameters(head)
        losses.append(output.item())
    return average.module.eval(), losses


def _batches(count: int, size: int, seed: int) -> Iterator[Tensor]:
    """Yield batches of row indices, shuffled for each epoch; the rest of an epoch is dropped."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield from torch.randperm(count, generator=generator)[: count - count % size].view(-1, size)


@torch.inference_mode()
def measure(head: Head, material: Encoded) -> dict[str, list[float]]:
    """Return the counts of each conversation, by name."""
    found: dict[str, list[float]] = {}
    for first in range(0, len(material.emb), ROWS):
        emb, activity, valid = material.rows(slice(first, first + ROWS))
        probs = torch.sigmoid(head(emb, valid).logits)
        for row, target in zip(probs.numpy(), activity.numpy(), strict=True):
            for name, value in _counts(expected_gain(row) > 0.5, target > 0.5).items():
                found.setdefault(name, []).append(value)
    return found


def _counts(active: np.ndarray, target: np.ndarray) -> dict[str, float]:
    best, in_order = frame_der(active, target), frame_der(active, target, "sorted")
    return {
        "total": best.total,
        "errors": best.errors,
        "confusion": best.confusion,
        "errors_in_order": in_order.errors,
        "order_right": float(order_right(active, target)),
        "count_right": float(_speakers(active) == _speakers(target)),
        "one_speaker_errors": frame_der(target.any(axis=1, keepdims=True), target).errors,
    }


def order_right(active: np.ndarray, target: np.ndarray) -> bool:
    """Return whether slot k is the best match of each reference speaker k; (T, S) bool, in order of arrival."""
    together = active.T.astype(np.float64) @ target
    slot = np.empty(target.shape[1], dtype=int)
    slots, speakers = linear_sum_assignment(together, maximize=True)
    slot[speakers] = slots
    return all(slot[k] == k and together[k, k] > 0 for k in np.flatnonzero(target.any(axis=0)))


def _speakers(active: np.ndarray) -> int:
    return int((active.sum(axis=0) >= SHORTEST_FRAMES).sum())

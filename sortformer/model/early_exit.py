"""Early exit: stop in the head once its estimates no longer change.

The confidence in an estimate is its agreement with the one before it (Schuster et al., CALM, arXiv 2207.07061, section
3.3, with the layers' outputs in place of their hidden states); so no recording exits at the first estimate. It exits as
a whole (Elbayad et al., Depth-Adaptive Transformer, arXiv 1910.10073, section 3.1): frames that exited alone would
still be needed as keys and values of the others.

Estimates between blocks are trained with their classes in any order. Before they are compared or returned, they are
sorted by arrival, as the model's own output is.
"""

from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

from sortformer.errors import ConfigError
from sortformer.masks import length_mask
from sortformer.model.arrival import arrival_order
from sortformer.model.sortformer import Sortformer

__all__ = ["EarlyOutput", "agreement", "check_exits", "in_order_of_arrival", "leave_early"]


@dataclass(frozen=True, slots=True)
class EarlyOutput:
    """The output of a model that may exit early."""

    probs: Tensor  # (B, T, S) slots in order of arrival, zero where not valid
    layers: Tensor  # (B,) int64 blocks of the head that each recording went through
    emb: Tensor  # (B, T, D) the encoder's embeddings


def check_exits(model: Sortformer, confidence: float) -> None:
    """Refuse a model that cannot exit early, and an invalid confidence.

    Raises:
        ConfigError: if fewer than two layers of the head make estimates, or the confidence is not in (0, 1].
    """
    if len(model.config.head.estimate_layers) < 2:
        raise ConfigError("early exit compares estimates, but fewer than two layers of this model's head make any")
    if not (isinstance(confidence, Real) and 0 < confidence <= 1):
        raise ConfigError(f"the confidence of an early exit must be above 0 and at most 1, got {confidence!r}")


@torch.inference_mode()
def leave_early(model: Sortformer, feats: Tensor, lengths: Tensor, confidence: float) -> EarlyOutput:
    """Diarize features (B, T, M) of the given lengths (B,), each recording by as many blocks as it needs.

    A recording exits at the first estimate whose agreement with the one before is ``confidence`` or more, whatever the
    rest of its batch does; the others go on without it.

    Raises:
        ConfigError: if the model cannot stop early, or the confidence is not in (0, 1].
    """
    check_exits(model, confidence)
    emb, frames = model.encoder.subsample(feats, lengths)
    valid, head = length_mask(frames, emb.shape[1]), model.head
    emb = model.encoder(emb, valid).out
    staying = torch.arange(len(emb), device=emb.device)
    probs = emb.new_zeros(*valid.shape, model.config.head.num_slots)  # under autocast not of the estimates' type
    layers = torch.full_like(staying, head.blocks.layers)
    x, before = head.section(0, head.input(emb), valid).out, None
    for index, layer in enumerate(head.estimate_layers):
        estimate, x, _ = head.estimate(index, x, valid)
        now = in_order_of_arrival(torch.sigmoid(estimate), valid)
        if before is not None:
            leaving = agreement(before, now, valid) >= confidence
            probs[staying[leaving]], layers[staying[leaving]] = now[leaving].to(probs.dtype), layer
            staying, valid, x, now = (rows[~leaving] for rows in (staying, valid, x, now))
            if not len(staying):
                return EarlyOutput(probs, layers, emb)
        before = now
        x = head.section(index + 1, x, valid).out
    last = torch.sigmoid(head.output(x, valid)).masked_fill(~valid[..., None], 0.0)
    probs[staying] = last.to(probs.dtype)
    return EarlyOutput(probs, layers, emb)


def in_order_of_arrival(probs: Tensor, valid: Tensor) -> Tensor:
    """Return probabilities (B, T, K) with their classes in order of arrival, and zero where not ``valid`` (B, T)."""
    probs = probs.masked_fill(~valid[..., None], 0.0)
    return probs.gather(2, arrival_order(probs)[:, None].expand_as(probs))


def agreement(one: Tensor, other: Tensor, valid: Tensor) -> Tensor:
    """Return how much of the speech (B,) in two matrices of probabilities (B, T, K) they have in common: 0 to 1.

    It is the Jaccard index of activities, defined for probabilities too: the sum of the lesser over that of the greater
    ones. Silence does not count, so a few words in a long recording weigh as much as they are of its speech.
    """
    either = torch.maximum(one, other).masked_fill(~valid[..., None], 0.0).sum(dim=(1, 2))
    both = torch.minimum(one, other).masked_fill(~valid[..., None], 0.0).sum(dim=(1, 2))
    return torch.where(either > 0, both / either, 1.0)

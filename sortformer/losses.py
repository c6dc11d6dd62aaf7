"""Sort loss and permutation-invariant loss, on logits.

Every loss is the binary cross-entropy of logits (B, T, S) against an activity matrix (B, T, S), of any type, averaged
over all valid frames and slots of the batch. The losses differ in the order of the matrix's columns. For a part of a
larger batch, ``frames`` is the number of valid frames in the whole, so that the losses of the parts sum to its loss.
"""

from itertools import permutations

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from sortformer.model.arrival import arrival_frames
from sortformer.precision import wide

__all__ = ["align", "binary_cross_entropy", "hybrid_loss", "permutation_loss", "sort_loss"]

_LARGEST = 1e30  # cost, so that sums of costs are finite
_FEW_SLOTS = 4  # up to which all orders are compared, so that a GPU need not wait for the CPU


def binary_cross_entropy(logits: Tensor, activity: Tensor, valid: Tensor, *, frames: int | None = None) -> Tensor:
    """Return the mean binary cross-entropy over the ``valid`` (B, T) frames and all slots; 0 where nothing is valid.

    Values in the padding, NaN included, affect neither the loss nor gradients.
    """
    padding = ~valid[..., None]
    logits = wide(logits)
    loss = nn.functional.binary_cross_entropy_with_logits(
        logits.masked_fill(padding, 0.0), activity.to(logits.dtype).masked_fill(padding, 0.0), reduction="none"
    )
    count = valid.sum() if frames is None else valid.new_tensor(frames, dtype=torch.int64)
    return loss.masked_fill(padding, 0.0).sum() / (count * logits.shape[2]).clamp(min=1)


def sort_loss(logits: Tensor, activity: Tensor, valid: Tensor, *, frames: int | None = None) -> Tensor:
    """Score the logits against the speakers in order of arrival (Sortformer, arXiv 2409.06656, section 3.2).

    For speakers with the same first frame, the order of lowest cross-entropy counts.
    """
    return binary_cross_entropy(logits, align(logits, activity, valid, by_arrival=True), valid, frames=frames)


def permutation_loss(logits: Tensor, activity: Tensor, valid: Tensor, *, frames: int | None = None) -> Tensor:
    """Score the logits against the best order of speakers (PIT: Fujita et al., arXiv 1909.05952, equation 3)."""
    return binary_cross_entropy(logits, align(logits, activity, valid, by_arrival=False), valid, frames=frames)


def hybrid_loss(
    logits: Tensor, activity: Tensor, valid: Tensor, sort_weight: float = 0.5, *, frames: int | None = None
) -> Tensor:
    """Mix sort and permutation loss: ``sort_weight`` of the first, the rest of the second."""
    loss = torch.zeros((), device=logits.device)
    if sort_weight > 0:
        loss = loss + sort_weight * sort_loss(logits, activity, valid, frames=frames)
    if sort_weight < 1:
        loss = loss + (1 - sort_weight) * permutation_loss(logits, activity, valid, frames=frames)
    return loss


@torch.no_grad()
def align(logits: Tensor, activity: Tensor, valid: Tensor, *, by_arrival: bool) -> Tensor:
    """Return ``activity`` (B, T, S) with each row's columns in the order of lowest cross-entropy.

    With ``by_arrival`` only orders by arrival are allowed, which leaves a choice only among ties. Logits that are not
    finite get an arbitrary order: the loss reveals them.
    """
    masked = wide(logits).masked_fill(~valid[..., None], 0.0)
    activity = activity.to(masked.dtype).masked_fill(~valid[..., None], 0.0)
    # BCE(x, y) = softplus(x) - x y, and the first term does not depend on the speaker: cost[slot, speaker] = -x . y
    cost = -(masked.transpose(1, 2) @ activity).nan_to_num().clamp(-_LARGEST, _LARGEST)
    if by_arrival:
        arrivals = arrival_frames(activity)
        due = arrivals.sort(dim=1).values
        # Larger than any difference between assignments, so that an invalid order never wins.
        penalty = 1.0 + 2.0 * cost.abs().sum(dim=(1, 2))
        cost = cost + penalty[:, None, None] * (due[:, :, None] != arrivals[:, None, :])
    order = _cheapest(cost)
    return activity.gather(2, order[:, None].expand(-1, activity.shape[1], -1))


def _cheapest(cost: Tensor) -> Tensor:
    """Return the assignment (B, S) of lowest cost (B, S, S); for few slots, all are compared, on the costs' device.

    For more slots it is found by the Hungarian method, so that eight take no longer than five.
    """
    slots = cost.shape[2]
    if slots <= _FEW_SLOTS:
        orders = torch.tensor(list(permutations(range(slots))), device=cost.device)
        totals = cost[:, torch.arange(slots, device=cost.device), orders].sum(dim=2)
        return orders[totals.argmin(dim=1)]
    found = [torch.from_numpy(linear_sum_assignment(row)[1]) for row in cost.cpu().double().numpy()]
    return torch.stack(found).to(cost.device)

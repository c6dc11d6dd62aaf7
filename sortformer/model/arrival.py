"""When each class arrives, and in which order: exact for design A, differentiable for designs B and C.

The order is per row; K classes, T frames. A class that never speaks arrives at frame T, after all others.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sortformer.attention.sinkhorn import sinkhorn
from sortformer.precision import wide

__all__ = [
    "Arrivals",
    "arrival_frames",
    "arrival_order",
    "expected_arrival",
    "sinkhorn_slots",
    "soft_ranks",
    "soft_slots",
]

_ITERATIONS = 20

_NEVER = torch.iinfo(torch.int64).max


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Which classes have arrived in B streams so far; rows are independent."""

    clock: Tensor  # (B,) int64: frames that have been seen
    frames: Tensor  # (B, K) int64: the first frame of each class; beyond all frames for one that has not arrived
    probs: Tensor  # (B, K) the probability in that frame; 0 for a class that has not arrived

    @classmethod
    def none(cls, rows: int, classes: int, device: torch.device | None = None) -> "Arrivals":
        """Return the state before the first frame."""
        clock = torch.zeros(rows, dtype=torch.int64, device=device)
        frames = torch.full((rows, classes), _NEVER, device=device)
        return cls(clock, frames, torch.zeros(rows, classes, dtype=torch.float32, device=device))

    def after(self, probs: Tensor) -> "Arrivals":
        """Return the state after frames of probabilities ``probs`` (B, T, K); known arrivals stay."""
        count = probs.shape[1]
        first = arrival_frames(probs)
        comes = (first < count) & (self.frames == _NEVER)
        then = probs.gather(1, first.clamp(max=count - 1)[:, None])[:, 0]
        return Arrivals(
            self.clock + count,
            torch.where(comes, self.clock[:, None] + first, self.frames),
            torch.where(comes, then, self.probs),
        )

    def ranks(self) -> Tensor:
        """Return the rank (B, K) of each class by arrival, as float32; of a tie, the more probable class is first.

        Classes tied in both share the mean of their ranks: so nothing depends on the order of classes.
        """
        frame, other_frame = self.frames[:, :, None], self.frames[:, None, :]
        prob, other_prob = self.probs[:, :, None], self.probs[:, None, :]
        at_once = other_frame == frame
        before = (other_frame < frame) | at_once & (other_prob > prob)
        alike = at_once & (other_prob == prob)  # a class is like itself
        return before.sum(dim=2) + (alike.sum(dim=2) - 1).float() / 2


def arrival_frames(probs: Tensor) -> Tensor:
    """Return the first frame (B, K) where ``probs`` (B, T, K) exceed one half; T for a class that never does."""
    active = probs > 0.5
    first = active.to(torch.int8).argmax(dim=1)
    return first.masked_fill(~active.any(dim=1), probs.shape[1])


def arrival_order(probs: Tensor) -> Tensor:
    """Return the classes (B, K) of ``probs`` (B, T, K) in order of arrival.

    Of classes that arrive at once, or never, the one with more speech stands first, so that the order does not depend
    on that of the classes.
    """
    by_speech = probs.sum(dim=1).argsort(dim=1, descending=True, stable=True)
    arrivals = arrival_frames(probs).gather(1, by_speech)
    return by_speech.gather(1, arrivals.argsort(dim=1, stable=True))


def expected_arrival(logits: Tensor, valid: Tensor, sharpness: float) -> tuple[Tensor, Tensor]:
    """Return the expected arrival in frames (B, K) and the probability (B, K) of having arrived at all.

    The chance of not having arrived by frame t is s_k(t) = prod_{u <= t} (1 - sigmoid(sharpness * logit)), and the
    expectation is its sum over the valid frames. Summed in float32, or wider, in the log domain: products would
    underflow.
    """
    hazard = nn.functional.softplus(sharpness * wide(logits)).masked_fill(~valid[..., None], 0.0)
    survival = torch.exp(-hazard.cumsum(dim=1))
    return (survival * valid[..., None]).sum(dim=1), 1.0 - survival[:, -1]


def soft_ranks(arrivals: Tensor, temperature: float) -> Tensor:
    """Return ranks (B, K) in [0, K - 1]: how many others arrived earlier, each counted by a sigmoid of the gap."""
    gap = (arrivals[:, :, None] - arrivals[:, None, :]) / temperature
    earlier = torch.sigmoid(gap)
    return earlier.sum(dim=2) - torch.diagonal(earlier, dim1=1, dim2=2)


def soft_slots(arrivals: Tensor, temperature: float) -> Tensor:
    """Return the row-stochastic matrix (B, slot, K) that sorts the arrivals, hard as the temperature falls.

    Prillo and Eisenschlos, "SoftSort", arXiv 2006.16038, equation 4, ascending.
    """
    return torch.softmax(_fits(arrivals, temperature), dim=2)


def sinkhorn_slots(arrivals: Tensor, temperature: float) -> Tensor:
    """Return a matrix (B, slot, K) as :func:`soft_slots`, but doubly stochastic: no class goes to two slots at once.

    What SoftSort normalises, by Sinkhorn's algorithm (Mena et al., arXiv 1802.08665, section 3): its columns sum to one
    exactly, its rows to about a percent. Ranks would be no good in place of arrivals: those that come at once have
    their mean, which fits no slot.
    """
    fits = _fits(arrivals, temperature)
    return sinkhorn(fits, torch.ones_like(fits, dtype=torch.bool), _ITERATIONS)


def _fits(arrivals: Tensor, temperature: float) -> Tensor:
    """How well each class fits each slot (B, slot, K), as logits: by how far it arrives from when that one is taken."""
    ordered = arrivals.sort(dim=1).values
    return -(ordered[:, :, None] - arrivals[:, None, :]).abs() / temperature

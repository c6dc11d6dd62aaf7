"""The permutation encoding: a block's estimates, sorted by arrival and added to the next block's input."""

import math

import torch
from torch import Tensor, nn

from sortformer.config.model import HeadConfig
from sortformer.model.arrival import Arrivals, expected_arrival, sinkhorn_slots, soft_ranks, soft_slots
from sortformer.position.absolute import sinusoids
from sortformer.precision import wide

__all__ = ["PermutationEncoding", "harmonics"]


def harmonics(ranks: Tensor, dim: int) -> Tensor:
    """Return codes (..., dim) of real ranks (...): one period of a sine for rank 0, two for rank 1, and so on.

    The speaker kernel of Park et al., "Sortformer", arXiv 2409.06656: gamma_k(z) = sin(2 pi k z / dim), k and z from 1
    on. Codes of integer ranks below dim / 2 - 1 are orthogonal, unlike the sinusoids of neighbouring ranks.
    """
    ranks = wide(ranks)
    places = torch.arange(1, dim + 1, device=ranks.device, dtype=ranks.dtype) / dim
    return torch.sin(2 * math.pi * (ranks[..., None] + 1) * places)


class PermutationEncoding(nn.Module):
    """Encoding of speaker activity by order of arrival, independent of the order of the estimated classes.

    hard (A)      Enc_t = sum_k P_tk [t >= arrival_k] G[rank_k]: known frame by frame, hence exact in streaming.
    soft (B)      Enc_t = sum_k P_tk Pr(k arrives) G(soft rank of the expected arrival), with gradient to arrival times.
    softsort (C)  Enc_t = sum_sk Pi_sk P_tk Pr(k arrives) G[s], with Pi the SoftSort matrix of the expected arrivals,
    sinkhorn (C)  or that made doubly stochastic.
    label         Enc_t = sum_k P_tk G[k]: the control without sorting.
    """

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.design = config.permutation
        self.takes_all = config.order_takes_all
        self.dim = config.dim
        self.fixed = harmonics if config.kernel == "harmonic" else sinusoids
        self.detach_order = config.detach_order
        self.temperature = config.order_temperature_frames
        self.sharpness = config.arrival_sharpness
        if config.kernel == "learned":
            self.table = nn.Parameter(torch.randn(config.num_slots, config.dim) * config.dim**-0.5)
        else:
            self.table = None
        # Much larger than the default: in silence the encoding is nearly zero, and must not be scaled up to unit size.
        self.norm = nn.LayerNorm(config.dim, eps=1e-2)
        # Initially closed: an untrained order carries no information, and the model starts as one without the encoding.
        self.gate = nn.Parameter(torch.zeros(1 if config.gate == "scalar" else config.dim))

    def init_state(self, logits: Tensor) -> Arrivals | None:
        """Return the initial state, for estimates of the shape (but for T) and device of ``logits`` (B, T, K).

        Raises:
            ValueError: for designs B and C, whose order depends on the whole recording.
        """
        if self.takes_all:
            raise ValueError(f"the permutation '{self.design}' needs whole recordings")
        return Arrivals.none(len(logits), logits.shape[2], logits.device) if self.design == "hard" else None

    def forward(self, logits: Tensor, valid: Tensor, state: Arrivals | None = None) -> tuple[Tensor, Arrivals | None]:
        """Return the encoding (B, T, D) to add, and the next state; of the logits (B, T, K) ``valid`` (B, T) count.

        Given a state, these are the estimates of the next chunk; otherwise, of a whole recording.
        """
        if state is None:
            return self.gate * self.norm(self.encode(logits, valid)), None
        probs = torch.sigmoid(logits.masked_fill(~valid[..., None], -torch.inf))
        return self.gate * self.norm(self._by_arrival(probs, state)), state.after(probs)

    def encode(self, logits: Tensor, valid: Tensor) -> Tensor:
        """Return the encoding (B, T, D) of a whole recording, before norm and gate."""
        logits = logits.masked_fill(~valid[..., None], -torch.inf)
        probs = torch.sigmoid(logits)
        slots = torch.arange(probs.shape[2], device=probs.device)
        if self.design == "label":
            return probs @ self._codes(slots, probs.dtype)
        if self.design == "hard":
            return self._by_arrival(probs, Arrivals.none(probs.shape[0], probs.shape[2], probs.device))
        arrivals, presence = expected_arrival(logits, valid, self.sharpness)
        if self.detach_order:
            arrivals = arrivals.detach()
        present = probs * presence[:, None].to(probs.dtype)
        if self.design == "soft":
            return present @ self._codes(soft_ranks(arrivals, self.temperature), probs.dtype)
        in_slots = soft_slots if self.design == "softsort" else sinkhorn_slots
        sorting = in_slots(arrivals, self.temperature).to(probs.dtype)
        return present @ sorting.transpose(1, 2) @ self._codes(slots, probs.dtype)

    def _by_arrival(self, probs: Tensor, past: Arrivals) -> Tensor:
        """Encode frames by the classes that have arrived by then; later arrivals rank behind and are masked."""
        known = past.after(probs)
        at = past.clock[:, None] + torch.arange(probs.shape[1], device=probs.device)
        arrived = at[..., None] >= known.frames[:, None]
        return (probs * arrived) @ self._codes(known.ranks(), probs.dtype)

    def _codes(self, ranks: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the code (..., D) of integer or real ranks (...); a learned table is interpolated."""
        if self.table is None:
            return self.fixed(ranks, self.dim).to(dtype)
        low = ranks.long().clamp(0, len(self.table) - 1)
        high = (low + 1).clamp(max=len(self.table) - 1)
        between = (ranks - low)[..., None].to(self.table.dtype)
        return torch.lerp(self.table[low], self.table[high], between).to(dtype)

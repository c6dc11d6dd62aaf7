"""A look at a model while it trains: frame-level DER on fixed conversations of unseen voices."""

import torch

from sortformer.metrics.counts import DerCounts
from sortformer.metrics.frames import frame_der
from sortformer.model import Sortformer
from sortformer.simulate import Conversations, Simulator

__all__ = ["dev_conversations", "dev_der"]


def dev_conversations(simulator: Simulator, count: int, duration_s: float, seed: int = 1) -> list[Conversations]:
    """Return ``count`` fixed conversations, one to a batch."""
    generator = torch.Generator().manual_seed(seed)
    return [simulator.batch(generator, 1, duration_s) for _ in range(count)]


@torch.inference_mode()
def dev_der(model: Sortformer, conversations: list[Conversations], device: torch.device) -> dict[str, float]:
    """Return the error rates, in best and in arrival order, and their parts, over all conversations (collar 0)."""
    best, in_order = DerCounts.zero(), DerCounts.zero()
    for batch in conversations:
        probs = model(batch.wave.to(device), batch.num_samples.to(device)).probs.cpu().numpy()
        for row, target in zip(probs, batch.activity.cpu().numpy(), strict=True):
            best += frame_der(row, target, "best")
            in_order += frame_der(row, target, "sorted")
    return {
        "der": best.rate,
        "der_sorted": in_order.rate,
        "miss": best.miss / best.total,
        "false_alarm": best.false_alarm / best.total,
        "confusion": best.confusion / best.total,
    }

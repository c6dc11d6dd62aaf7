"""Evaluation during training: frame-level DER on fixed conversations that are not trained on."""

import hashlib
from dataclasses import astuple, replace

import numpy as np
import torch

from sortformer.config.model import ModelConfig
from sortformer.config.train import TrainConfig
from sortformer.data import Crops, Recordings, Sources
from sortformer.errors import InputError
from sortformer.metrics.counts import DerCounts
from sortformer.metrics.frames import frame_der
from sortformer.model import Sortformer
from sortformer.simulate import Conversations
from sortformer.train.processes import Processes

__all__ = ["content_of", "dev_conversations", "dev_der"]

_SEED = 1


def dev_conversations(config: TrainConfig, model: ModelConfig) -> list[Conversations]:
    """Return the fixed conversations to evaluate a run on, one per batch, of the duration of the last stage.

    They are crops of the recipe's ``dev`` manifest or, without one, simulated with the dev voices of its bank. If the
    model's features ask for it, their loudness is normalised as in ``diarize``.

    Raises:
        InputError: if the manifest or the bank cannot be used.
    """
    count, duration_s = config.evaluate_conversations, config.stages[-1].duration_s
    if not count:
        return []
    if config.data.dev is not None:
        crops = Crops(Recordings.read(config.data.dev), duration_s, config.simulation.num_slots, model)
        rng = np.random.default_rng(_SEED)
        return [crops.read(crops.draw(rng)) for _ in range(count)]
    data = replace(config.data, recordings=(), simulated_weight=1.0)
    try:
        simulator = Sources.load(data, "dev").simulator(config.simulation, model)
    except InputError as error:
        raise InputError(
            f"{error}; evaluation needs such voices, or a manifest as 'dev' in [data]: give one, or set "
            "evaluate_conversations = 0"
        ) from error
    generator = torch.Generator().manual_seed(_SEED)
    made = [simulator.batch(generator, 1, duration_s) for _ in range(count)]
    return [each.alike_loud() for each in made] if model.features.alike_loud else made


def content_of(conversations: list[Conversations]) -> str | None:
    """Return a SHA-256 of who speaks when, None without conversations; samples may differ between machines."""
    digest = hashlib.sha256()
    for each in conversations:
        digest.update(repr(tuple(each.activity.shape)).encode())
        digest.update(each.activity.numpy().tobytes())
    return digest.hexdigest() if conversations else None


@torch.inference_mode()
def dev_der(model: Sortformer, conversations: list[Conversations], processes: Processes) -> dict[str, float]:
    """Return the DER with slots in best and in arrival order, and the components of the former (collar 0).

    They are computed over all conversations: those given, and those of the other processes.
    """
    best, in_order = DerCounts(), DerCounts()
    for batch in conversations:
        probs = model(batch.wave.to(processes.device), batch.num_samples.to(processes.device)).probs.cpu().numpy()
        for row, target in zip(probs, batch.activity.cpu().numpy(), strict=True):
            best += frame_der(row, target, "best")
            in_order += frame_der(row, target, "sorted")
    best, in_order = (DerCounts(*processes.sum_numbers(*astuple(counts))) for counts in (best, in_order))
    return {
        "der": best.rate,
        "der_sorted": in_order.rate,
        "miss": best.miss / max(1.0, best.total),
        "false_alarm": best.false_alarm / max(1.0, best.total),
        "confusion": best.confusion / max(1.0, best.total),
    }

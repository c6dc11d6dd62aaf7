"""The initial model of a run: random weights, or those of a checkpoint, to which slots may be added."""

from dataclasses import replace

import torch

from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.loading import read
from sortformer.config.model import ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.strict import differences, to_dict
from sortformer.config.train import TrainConfig
from sortformer.errors import InputError
from sortformer.model import Sortformer
from sortformer.model.identity import identity

__all__ = ["initial_checkpoint", "with_slots"]

_SILENT_LOGIT = -4.0


def initial_checkpoint(config: TrainConfig) -> tuple[Checkpoint, str]:
    """Return the initial model of a run, on the CPU, and a string that identifies it.

    Random weights are drawn from the run's seed. With ``config.init`` the config is the checkpoint's, plus slots.

    Raises:
        InputError: if the checkpoint cannot be read, or its model differs from the recipe's by more than added slots.
    """
    slots = config.simulation.num_slots
    if config.init is None:
        wanted = config.model or _slots(ModelConfig(), slots)
        # Identified by config and seed: the last bits of the weights depend on the processor that draws them.
        return Checkpoint(_random(wanted, config.seed), PostprocessConfig()), f"{to_dict(wanted)} {config.seed}"
    start = read(config.init)
    begun_as = f"{identity(start.model, start.model.config, start.postprocess)} {start.licence} {slots}"
    found = start.model.config
    if config.model is not None:
        _check_same(config.init, config.model, found)
    if slots < found.head.num_slots:
        raise InputError(
            f"the model in {config.init} has {found.head.num_slots} slots, but num_slots of the recipe is {slots}: "
            "slots can be added, not removed"
        )
    if slots > found.head.num_slots:
        start = replace(start, model=with_slots(start.model, slots, config.seed))
    return start, begun_as


def with_slots(model: Sortformer, num_slots: int, seed: int) -> Sortformer:
    """Return a copy of a model with more slots: the old ones are unchanged, the new ones are silent.

    A silent slot never arrives, so the old ones are sorted and encoded as before.
    """
    wider = _random(_slots(model.config, num_slots), seed)
    with torch.no_grad():
        grown = wider.state_dict()
        for name, weights in grown.items():
            if name.startswith(("head.out.", "head.estimates.")):
                weights.fill_(_SILENT_LOGIT if name.endswith("bias") else 0.0)
        for name, weights in model.state_dict().items():
            grown[name][tuple(map(slice, weights.shape))] = weights
    return wider


def _random(config: ModelConfig, seed: int) -> Sortformer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Sortformer(config)


def _slots(config: ModelConfig, num_slots: int) -> ModelConfig:
    return replace(config, head=replace(config.head, num_slots=num_slots))


def _check_same(source: str, wanted: ModelConfig, found: ModelConfig) -> None:
    """Refuse a [model] table that differs from the checkpoint's config by more than slots."""
    different = differences(_slots(wanted, found.head.num_slots), found)
    if different:
        said = "; ".join(f"{name} is {ours!r}, not {theirs!r}" for name, ours, theirs in different)
        raise InputError(
            f"the recipe's [model] table differs from the model in {source}: {said} "
            "(leave the table out to train that model)"
        )

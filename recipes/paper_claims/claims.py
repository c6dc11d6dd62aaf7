"""Do the papers' claims hold for speakers? Small heads on a frozen encoder, one mechanism in the layers of each.

    python claims.py OUT [--seeds 0 1 2] [--minutes N]

The encoder is that of the model in the package. Encoded voices are cached in OUT, and each finished cell adds a line to
``results.jsonl`` there: the command can be repeated until all are done, also for several seeds at once. The heads of a
seed start from a common head, trained with full attention: each takes its weights where shapes allow, and then has the
same number of steps on the same conversations. ``summary.py OUT`` makes tables and the plot.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from conversations import FADES_S, Conversations, compose
from mechanisms import START, STREAMED, WHOLE
from reentry import Probes, probe, probes
from torch import Tensor, nn
from voices import SILENCE, STEP_S, Voices, load

import sortformer
from sortformer import checkpoint
from sortformer.config.attention import AttentionConfig
from sortformer.config.model import ModelConfig
from sortformer.config.train import StageConfig, TrainConfig
from sortformer.losses import binary_cross_entropy
from sortformer.model.head import Head
from sortformer.train.schedule import learning_rate

SHIPPED = Path(sortformer.__file__).parent / "weights"
FINE = 0.25  # of the learning rate, for heads that start from a trained one
AWAY_S = 20  # beyond the reach of a Transformer-XL's memory in one layer
DEV_SEED = 1_000_000
GROUPS = {"whole": WHOLE, "streamed": STREAMED}


@dataclass(frozen=True, slots=True)
class Material:
    """The data for training and evaluation of all cells."""

    train: Voices
    dev: Conversations
    probes: Mapping[str, Probes]


def build(recipe: TrainConfig, width: int, attention: AttentionConfig, seed: int, start: Head | None = None) -> Head:
    """Return a head with this attention, and with the weights of ``start`` where it has them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = Head(width, replace((recipe.model or ModelConfig()).head, attention=(attention,)))
    if start is not None:
        head.load_state_dict(head.state_dict() | start.state_dict())
    return head


def fit(
    head: Head, voices: Voices, recipe: TrainConfig, stages: Sequence[StageConfig], seed: int, rate: float
) -> float:
    """Train a head through stages at ``rate`` times the learning rate; return the CPU seconds of a step."""
    steps = stages[-1].until_step
    generator = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(head.parameters(), weight_decay=recipe.optimizer.weight_decay)
    head.train()
    taken = 0.0
    for step in range(steps):
        stage = next(stage for stage in stages if step < stage.until_step)
        made = drawn(voices, generator, stage, recipe)
        started = time.process_time()
        for group in optimizer.param_groups:
            group["lr"] = rate * learning_rate(recipe.optimizer, step, steps)
        optimizer.zero_grad()
        objective(head, made, recipe).backward()
        nn.utils.clip_grad_norm_(head.parameters(), recipe.optimizer.clip_norm)
        optimizer.step()
        taken += time.process_time() - started
    head.eval()
    return taken / steps


def drawn(voices: Voices, generator: np.random.Generator, stage: StageConfig, recipe: TrainConfig) -> Conversations:
    """Draw a batch of conversations of a stage."""
    slots = (recipe.model or ModelConfig()).head.num_slots
    return compose(voices, generator, stage.batch_size, round(stage.duration_s / STEP_S), slots)


def objective(head: Head, made: Conversations, recipe: TrainConfig) -> Tensor:
    """Return the sort loss of the logits plus the weighted auxiliary losses, such as those of compression.

    No two speakers begin in the same step, so their order is unique, and the sort loss is the cross-entropy alone.
    """
    valid = torch.ones(made.slot.shape, dtype=torch.bool)
    step = head(made.emb, valid)
    loss = binary_cross_entropy(step.logits, made.activity(step.logits.shape[2]), valid)
    return loss + sum(recipe.loss.weight(name) * other for name, other in step.losses.items())


def kept_for_backward(head: Head, made: Conversations, recipe: TrainConfig) -> int:
    """Return the bytes that a training step saves for the backward pass, without the weights."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in head.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    head.train()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = objective(head, made, recipe)
    # The graph still holds all packed tensors, so that no address is used twice.
    assert loss.requires_grad
    head.eval()
    return sum(size for address, size in kept.items() if address not in weights)


@torch.inference_mode()
def error(head: Head, made: Conversations) -> dict[str, list[float]]:
    """Return the loss and the counts of each conversation."""
    valid = torch.ones(made.slot.shape, dtype=torch.bool)
    logits = head(made.emb, valid).logits
    rows = zip(logits, made.activity(logits.shape[2]), valid, strict=True)
    losses = [float(binary_cross_entropy(*(part[None] for part in row))) for row in rows]
    return counted(logits.argmax(dim=2), made) | {"loss": losses, "conversations": [1.0] * len(losses)}


def counted(given: Tensor, made: Conversations) -> dict[str, list[float]]:
    """Count steps of each conversation, given the likeliest slots (B, T): those with speech, those ``away``, whose
    speaker had been silent for ``AWAY_S`` or more, and those of either kind with a wrong slot.
    """
    spoken = made.slot != SILENCE
    away = made.absence() * STEP_S >= AWAY_S
    wrong = spoken & (given != made.slot)
    found = {"spoken": spoken, "wrong": wrong, "away": away, "wrong_away": wrong & away}
    return {name: steps.sum(dim=1).tolist() for name, steps in found.items()}


def nearest(made: Conversations) -> Tensor:
    """Return the slots (B, T) of the nearest mean of a speaker's frames: an oracle that shows what the frames allow."""
    slots = int(made.slot.max()) + 1
    activity = made.activity(slots)
    heard = made.emb[..., : -len(FADES_S)]
    means = activity.transpose(1, 2) @ heard / activity.sum(dim=1)[..., None]  # NaN for empty slots
    return torch.cdist(heard, means).nan_to_num(torch.inf).argmin(dim=2)


def slots_of_those_who_return(head: Head, material: Material) -> dict[str, Any]:
    """Return the results of the re-entry probe of a streamed head, the size of its state, and the CPU seconds."""
    started, found = time.process_time(), {}
    for gap, made in material.probes.items():
        result = probe(head, made)
        found[gap] = {"kept": result.kept, "lost": result.lost}
        found["state_values"] = result.state_values
    return {"probe": found, "probe_s": time.process_time() - started}


def common_head(path: Path, recipe: TrainConfig, material: Material, seed: int) -> Head:
    """Return the common head of a seed, which is trained once and then read from ``path``."""
    head = build(recipe, material.dev.emb.shape[2], START, seed).eval()
    if not path.exists():
        fit(head, material.train, recipe, recipe.stages, seed, 1.0)
        torch.save(head.state_dict(), path)
    head.load_state_dict(torch.load(path, weights_only=True))
    return head


def cell(start: Head, attention: AttentionConfig, recipe: TrainConfig, material: Material, steps: int, seed: int):
    """Train a head from the weights of ``start``, and return its measurements."""
    head = build(recipe, material.dev.emb.shape[2], attention, seed, start).eval()
    swapped = error(head, material.dev)
    last = replace(recipe.stages[-1], until_step=steps)
    seconds = fit(head, material.train, recipe, [last], DEV_SEED + 1 + seed, FINE)
    again = drawn(material.train, np.random.default_rng(seed), last, recipe)
    return {
        "swapped": swapped,
        **error(head, material.dev),
        "step_s": seconds,
        "kept_bytes": kept_for_backward(head, again, recipe),
        "weights": sum(parameter.numel() for parameter in head.parameters()),
        **(slots_of_those_who_return(head, material) if attention.carries else {}),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, default=SHIPPED, help="whose encoder to use: a folder")
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parent / "recipe.toml")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=60, help="of each cell, after those of the common head")
    parser.add_argument("--heard-s", type=float, default=32, help="seconds that the encoder hears of each voice")
    parser.add_argument("--speech-s", type=float, default=22.4, help="seconds of speech in them: so much is used")
    parser.add_argument("--dev", type=int, default=64, help="conversations of other voices to measure on")
    parser.add_argument("--trios", type=int, default=48, help="of voices, for the re-entry probe")
    parser.add_argument("--groups", nargs="+", choices=tuple(GROUPS), default=list(GROUPS))
    parser.add_argument("--mechanisms", nargs="+", choices=[*WHOLE, *STREAMED], default=[*WHOLE, *STREAMED])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no cell after so long")
    options = parser.parse_args(arguments)
    until = time.perf_counter() + 60 * options.minutes
    recipe = TrainConfig.read(options.recipe)
    model = checkpoint.load(options.model)[0].eval()
    train, dev = load(options.out, model, recipe, options.heard_s, options.speech_s)
    fixed = replace(recipe.stages[-1], batch_size=options.dev)
    material = Material(
        train,
        drawn(dev, np.random.default_rng(DEV_SEED), fixed, recipe),
        probes(dev, np.random.default_rng(DEV_SEED), options.trios) if "streamed" in options.groups else {},
    )
    path = options.out / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = {(line["group"], line["mechanism"], line["seed"]) for line in map(json.loads, lines)}

    def write(group: str, mechanism: str, seed: int, found: Mapping[str, Any]) -> None:
        line = {"group": group, "mechanism": mechanism, "seed": seed, **found}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        wrong = 100 * sum(found["wrong"]) / sum(found["spoken"])
        print(f"{group}, {mechanism}, seed {seed}: {wrong:.1f} % of the slots are wrong", flush=True)

    references = {"always the first slot": torch.zeros_like(material.dev.slot), "nearest mean": nearest(material.dev)}
    for name, given in references.items():
        if ("reference", name, 0) not in done:
            write("reference", name, 0, counted(given, material.dev))
    for seed in options.seeds:
        start = common_head(options.out / f"start-{seed}.pt", recipe, material, seed)
        for group in options.groups:
            for name, attention in GROUPS[group].items():
                if time.perf_counter() > until:
                    return
                if name in options.mechanisms and (group, name, seed) not in done:
                    write(group, name, seed, cell(start, attention, recipe, material, options.steps, seed))


if __name__ == "__main__":
    # Denormals in decaying optimiser moments make a CPU many times slower; heads are too small for two threads.
    torch.set_flush_denormal(True)
    torch.set_num_threads(1)
    main()

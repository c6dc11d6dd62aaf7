"""Do the papers' claims hold for speakers? Small heads on a frozen encoder, one mechanism in the layers of each.

    python claims.py OUT [--seeds 3] [--minutes N]

The encoder is that of the model in the package; what it makes of simulated conversations is kept in OUT, and so is a
line of ``results.jsonl`` for each finished cell: the command can be given again until all are done. The heads of one
seed start from one head, trained with full attention; each takes its weights where shapes allow, and then has the same
number of steps on the same crops. ``summary.py OUT`` makes tables and the picture.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from frames import STEP_S, Frames, conversations
from mechanisms import START, STREAMED, WHOLE
from reentry import Probes, probe, probes
from torch import Tensor, nn

import sortformer
from sortformer import checkpoint
from sortformer.config.attention import AttentionConfig
from sortformer.config.model import ModelConfig
from sortformer.config.train import TrainConfig
from sortformer.losses import hybrid_loss
from sortformer.metrics.frames import frame_der
from sortformer.model.head import Head
from sortformer.train.schedule import learning_rate

SHIPPED = Path(sortformer.__file__).parent / "weights"
FINE = 0.25  # of the learning rate, for heads that start from a trained one
CROP_S = 72  # of the 96 s of a conversation, so that no two steps show the same
GROUPS = {"whole": WHOLE, "streamed": STREAMED}


@dataclass(frozen=True, slots=True)
class Material:
    """All that cells are trained and measured on."""

    train: Frames
    dev: Frames
    probes: Mapping[str, Probes]


def build(recipe: TrainConfig, width: int, attention: AttentionConfig, seed: int, start: Head | None = None) -> Head:
    """Return a head of this attention, with the weights of another one where both have them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = Head(width, replace((recipe.model or ModelConfig()).head, attention=(attention,)))
    if start is not None:
        head.load_state_dict(head.state_dict() | start.state_dict())
    return head


def fit(head: Head, frames: Frames, recipe: TrainConfig, steps: int, seed: int, rate: float = 1.0) -> float:
    """Train a head, at so much of the recipe's learning rate, and return the seconds of CPU time that a step took."""
    crop, rows = round(CROP_S / STEP_S), recipe.stages[-1].batch_size
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(head.parameters(), weight_decay=recipe.optimizer.weight_decay)
    started = time.process_time()
    head.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * learning_rate(recipe.optimizer, step, steps)
        loss = objective(head, frames.crops(generator, rows, min(crop, frames.emb.shape[1])), recipe)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), recipe.optimizer.clip_norm)
        optimizer.step()
    head.eval()
    return (time.process_time() - started) / max(1, steps)


def objective(head: Head, frames: Frames, recipe: TrainConfig) -> Tensor:
    """Return the hybrid loss of the logits, and what trains the compression of a memory."""
    valid = torch.ones(frames.emb.shape[:2], dtype=torch.bool)
    step = head.step(frames.emb, valid)
    loss = hybrid_loss(step.logits, frames.activity, valid, recipe.loss.sort_weight)
    return loss + sum(recipe.loss.weight(name) * other for name, other in step.losses.items())


def kept_for_backward(head: Head, frames: Frames, recipe: TrainConfig) -> int:
    """Return how many bytes a training step keeps for its way back, weights aside: the memory that training needs."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in head.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    head.train()
    few = Frames(*(part[: recipe.stages[-1].batch_size] for part in (frames.emb, frames.activity, frames.shipped)))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = objective(head, few, recipe)
    # The graph still holds all that was packed, so that no address stands for two.
    assert loss.requires_grad
    head.eval()
    return sum(size for address, size in kept.items() if address not in weights)


@torch.inference_mode()
def error(head: Head, frames: Frames, recipe: TrainConfig) -> dict[str, list[float]]:
    """Return what is counted of each conversation, in steps times speakers."""
    valid = torch.ones(frames.emb.shape[:2], dtype=torch.bool)
    logits = head.step(frames.emb, valid).logits
    rows = zip(logits, frames.activity, valid, strict=True)
    losses = [float(hybrid_loss(x[None], y[None], there[None], recipe.loss.sort_weight)) for x, y, there in rows]
    return counted(logits.sigmoid(), frames.activity) | {"loss": losses, "conversations": [1.0] * len(losses)}


def counted(probs: Tensor, activity: Tensor) -> dict[str, list[float]]:
    """Return what is counted of each conversation, for probabilities and activity (B, T, S).

    ``wrong`` are the steps with one speaker in which another slot than that of their arrival is the most probable: they
    need no threshold, which a head that cannot know the order does not reach.
    """
    pairs = list(zip(probs.numpy(), activity.numpy(), strict=True))
    best, in_order = ([frame_der(*pair, order) for pair in pairs] for order in ("best", "sorted"))
    alone = activity.sum(dim=2) == 1
    wrong = alone & (probs.argmax(dim=2) != activity.argmax(dim=2))
    return {
        "total": [found.total for found in best],
        "errors": [found.errors for found in best],
        "errors_in_order": [found.errors for found in in_order],
        "alone": alone.sum(dim=1).tolist(),
        "wrong": wrong.sum(dim=1).tolist(),
    }


def slots_of_those_who_return(head: Head, material: Material) -> dict[str, Any]:
    """Return what a streamed head does with the slots of those who come back, and what the longest stream took."""
    started, found = time.process_time(), {}
    for gap, made in material.probes.items():
        result = probe(head, made)
        found[gap] = {"kept": result.kept, "lost": result.lost}
        found["state_values"] = result.state_values
    return {"probe": found, "probe_s": time.process_time() - started}


def common_head(path: Path, attention: AttentionConfig, recipe: TrainConfig, frames: Frames, seed: int) -> Head:
    """Return the head that all of a seed start from; trained once."""
    head = build(recipe, frames.emb.shape[2], attention, seed).eval()
    if not path.exists():
        fit(head, frames, recipe, recipe.steps, seed)
        torch.save(head.state_dict(), path)
    head.load_state_dict(torch.load(path, weights_only=True))
    return head


def cell(start: Head, attention: AttentionConfig, recipe: TrainConfig, material: Material, steps: int, seed: int):
    """Train a head with the weights of another one, and return what is measured of it."""
    head = build(recipe, material.train.emb.shape[2], attention, seed, start).eval()
    swapped = error(head, material.dev, recipe)
    seconds = fit(head, material.train, recipe, steps, seed + 1000, FINE)
    return {
        "swapped": swapped,
        **error(head, material.dev, recipe),
        "step_s": seconds,
        "kept_bytes": kept_for_backward(head, material.train, recipe),
        "weights": sum(parameter.numel() for parameter in head.parameters()),
        **(slots_of_those_who_return(head, material) if attention.carries else {}),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, default=SHIPPED, help="whose encoder to use: a folder")
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parent / "recipe.toml")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="of each cell, after those of the common head")
    parser.add_argument("--train", type=int, default=96, help="conversations to train on")
    parser.add_argument("--dev", type=int, default=24, help="conversations of other voices to measure on")
    parser.add_argument("--trios", type=int, default=12, help="of voices, for the re-entry probe")
    parser.add_argument("--groups", nargs="+", choices=tuple(GROUPS), default=list(GROUPS))
    parser.add_argument("--mechanisms", nargs="+", choices=[*WHOLE, *STREAMED], default=[*WHOLE, *STREAMED])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no cell after so long")
    options = parser.parse_args(arguments)
    until = time.perf_counter() + 60 * options.minutes
    recipe = TrainConfig.read(options.recipe)
    model = checkpoint.load(options.model)[0].eval()
    material = Material(
        conversations(options.out, model, recipe, "train", options.train),
        conversations(options.out, model, recipe, "dev", options.dev),
        probes(options.out, model, recipe, options.trios) if "streamed" in options.groups else {},
    )
    path = options.out / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = {(line["group"], line["mechanism"], line["seed"]) for line in map(json.loads, lines)}

    def write(group: str, mechanism: str, seed: int, found: Mapping[str, Any]) -> None:
        line = {"group": group, "mechanism": mechanism, "seed": seed, **found}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        der, wrong = (100 * sum(found[a]) / sum(found[b]) for a, b in (("errors", "total"), ("wrong", "alone")))
        print(f"{group}, {mechanism}, seed {seed}: DER {der:.1f} %, wrong {wrong:.1f} %", flush=True)

    if not lines:
        speech = material.dev.activity.amax(dim=2, keepdim=True)
        write("reference", "one speaker", 0, counted(speech, material.dev.activity))
        write("reference", "the encoder's own head", 0, counted(material.dev.shipped, material.dev.activity))
    for seed in range(options.seeds):
        start = common_head(options.out / f"start-{seed}.pt", START, recipe, material.train, seed)
        for group in options.groups:
            for name, attention in GROUPS[group].items():
                if time.perf_counter() > until:
                    return
                if name in options.mechanisms and (group, name, seed) not in done:
                    write(group, name, seed, cell(start, attention, recipe, material, options.steps, seed))


if __name__ == "__main__":
    # Moments that fade to denormal numbers slow a CPU down many times; and heads are too small for two threads.
    torch.set_flush_denormal(True)
    torch.set_num_threads(1)
    main()

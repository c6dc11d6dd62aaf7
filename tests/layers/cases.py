"""Variants of blocks, each with its oracle. A registered kind without a case fails the tests.

A case takes a seed and returns, for one recording, our result and the oracle's.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from sortformer.config.depth import ReversibleDepth, UniversalDepth
from sortformer.config.labels import LabelConfig
from sortformer.config.model import EncoderConfig
from sortformer.layers import TransformerBlock, build_stack
from sortformer.layers.stack import Stack
from sortformer.memory import LabelMemory
from sortformer.model.early_exit import leave_early
from tests.draws import draw
from tests.masks import unpadded
from tests.oracles.attention_loops import sinusoid
from tests.oracles.depth_loops import coupled, halted
from tests.oracles.exit_loops import exit_of, jaccard, sorted_by_arrival
from tests.oracles.label_loops import label_shares
from tests.oracles.transformer_loops import branches, gated
from tests.small_models import small_config, small_model

__all__ = ["CASES", "DIM", "FRAMES", "STACKS", "build"]

DIM, HEADS, LAYERS, FRAMES = 8, 2, 3, 7

Weights = dict[str, np.ndarray]
Oracle = Callable[[list[Weights], Weights, np.ndarray], np.ndarray]
"""Takes the weights of each block, those of the stack, and frames (T, D); returns frames."""


def build(options: dict[str, Any], seed: int) -> Stack:
    settings = {"position": "none", "dropout": 0.0} | options
    config = EncoderConfig("transformer", dim=DIM, heads=HEADS, ff_dim=12, layers=LAYERS, **settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        stack = build_stack(config, partial(TransformerBlock, norm="pre", activation="gelu")).double()
        for parameter in stack.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    return stack


def of_stack(options: dict[str, Any], oracle: Oracle, seed: int) -> tuple[np.ndarray, np.ndarray]:
    stack, x = build(options, seed), draw(seed, FRAMES, DIM)
    with torch.no_grad():
        found = stack(*unpadded(x[None])).out[0].numpy()
    blocks = [{name: value.numpy() for name, value in block.state_dict().items()} for block in stack]
    return found, oracle(blocks, {name: value.numpy() for name, value in stack.state_dict().items()}, x.numpy())


def plain(weights: Weights, x: np.ndarray) -> np.ndarray:
    attend, transform = branches(weights, HEADS)
    x = x + attend(x)
    return x + transform(x)


def stacked(blocks: list[Weights], _: Weights, x: np.ndarray) -> np.ndarray:
    for weights in blocks:
        x = plain(weights, x)
    return x


def gates(blocks: list[Weights], _: Weights, x: np.ndarray) -> np.ndarray:
    for weights in blocks:
        attend, transform = branches(weights, HEADS)
        x = gated(weights, "attention_residual", x, attend(x))
        x = gated(weights, "feed_forward_residual", x, transform(x))
    return x


def reversible(blocks: list[Weights], _: Weights, x: np.ndarray) -> np.ndarray:
    return coupled(x, [branches(weights, HEADS) for weights in blocks])  # pyright: ignore[reportArgumentType, reportReturnType]


def once(weights: Weights, layer: int, x: np.ndarray) -> np.ndarray:
    return plain(weights, x + sinusoid(layer + 1, DIM))


def universal(blocks: list[Weights], _: Weights, x: np.ndarray) -> np.ndarray:
    (weights,) = blocks
    for layer in range(LAYERS):
        x = once(weights, layer, x)
    return x


def halting(blocks: list[Weights], stack: Weights, x: np.ndarray) -> np.ndarray:
    (weights,) = blocks
    out, _ = halted(
        torch.from_numpy(x)[None],
        lambda layer, state: torch.from_numpy(once(weights, layer, state[0].numpy()))[None],
        lambda frame: 1 / (1 + np.exp(-float(frame.numpy() @ stack["done_weight"] + stack["done_bias"]))),
        LAYERS,
        halt_at=0.8,
    )
    return out[0].numpy()


def early_exit(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """With a confidence between the agreements that occur, so that rounding does not matter."""
    model = small_model(small_config(head={"layers": 4, "estimate_layers": (0, 1, 3)}), seed)
    feats, lengths = draw(seed, 1, 120, 16).float(), torch.tensor([120])
    with torch.no_grad():
        whole = model.forward_features(feats, lengths)
    estimates = [estimate[0].sigmoid().numpy() for estimate in whole.estimates]
    ordered = [sorted_by_arrival(estimate) for estimate in estimates]
    agreements = [jaccard(*ordered[:2]), jaccard(*ordered[1:])]
    _, expected = exit_of(estimates, float(np.mean(agreements)))
    assert expected is not None
    return leave_early(model, feats, lengths, float(np.mean(agreements))).probs[0].numpy(), expected


def label_memory(seed: int) -> tuple[np.ndarray, np.ndarray]:
    config = LabelConfig(neighbours=3, temperature=0.7, stranger=1.5)
    memory = LabelMemory(config).add(draw(seed, 4, DIM), 0).add(draw(seed + 1, 3, DIM), 1)
    frames = draw(seed + 2, FRAMES, DIM)
    stored = [(key.numpy(), int(label)) for key, label in zip(memory.key, memory.label, strict=True)]
    expected = [label_shares(stored, frame, 2, 3, 0.7, 1.5) for frame in frames.numpy()]
    return memory.read(frames, 2).numpy(), np.array(expected)


STACKS: dict[str, tuple[dict[str, Any], Oracle]] = {
    "gru": ({"residual": "gru"}, gates),
    "reversible": ({"depth": ReversibleDepth()}, reversible),
    "chunked feed-forward": ({"ff_chunk_frames": 2}, stacked),
    "universal": ({"depth": UniversalDepth()}, universal),
    "halting": ({"depth": UniversalDepth(halting=True, halt_at=0.8)}, halting),
}

CASES: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {
    "early exit": early_exit,
    "label memory": label_memory,
    **{name: partial(of_stack, *case) for name, case in STACKS.items()},
}

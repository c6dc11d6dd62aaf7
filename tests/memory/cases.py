"""Layers with memories, and how they stream."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sortformer.attention import MultiHeadAttention
from sortformer.attention.protocol import LayerStep
from sortformer.config.attention import AttentionConfig, Position
from sortformer.config.cores import Core, FullCore
from sortformer.config.memories import CompressiveMemory, Memory
from tests.masks import unpadded

__all__ = ["CHUNK", "DIM", "FRAMES", "HEADS", "build", "compressive", "streamed"]

DIM, HEADS, CHUNK, FRAMES = 8, 2, 3, 14


def compressive(compression: str, loss: str = "none") -> CompressiveMemory:
    """Return a memory of four frames and three compressed ones."""
    return CompressiveMemory(
        frames=4, compressed_frames=3, ratio=2, compression=compression, loss=loss, chunk_frames=CHUNK
    )


def build(memory: Memory, core: Core | None = None, position: Position = "none", seed: int = 0) -> MultiHeadAttention:
    """Return a layer with random weights, in double precision."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = MultiHeadAttention(DIM, HEADS, AttentionConfig(core or FullCore(), position, memory)).double()
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    return layer


def streamed(layer: MultiHeadAttention, x: Tensor, sizes: int | Sequence[int] = CHUNK) -> list[LayerStep]:
    """Return the steps of a stream (B, T, D) in chunks of these sizes."""
    state, steps = layer.init_state(x), []
    for chunk in x.split(sizes, dim=1):
        steps.append(layer(*unpadded(chunk), state))
        state = steps[-1].state
    return steps

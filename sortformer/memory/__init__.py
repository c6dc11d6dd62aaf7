"""Memories of a layer for earlier chunks, one file per mechanism; ``memory.protocol`` defines their interface."""

from sortformer.memory.build import build_memory
from sortformer.memory.compressive import Compressive
from sortformer.memory.labels import LabelMemory, interpolate
from sortformer.memory.nearest import Nearest
from sortformer.memory.protocol import LayerChunk, Memory, Recall
from sortformer.memory.transformer_xl import TransformerXL

__all__ = [
    "Compressive",
    "LabelMemory",
    "LayerChunk",
    "Memory",
    "Nearest",
    "Recall",
    "TransformerXL",
    "build_memory",
    "interpolate",
]

"""From the config of a stack's depth to the module."""

from collections.abc import Callable
from dataclasses import replace

from torch import nn

from sortformer.config.attention import AttentionConfig
from sortformer.config.depth import Depth, ReversibleDepth, StackedDepth, UniversalDepth
from sortformer.layers.reversible import ReversibleStack
from sortformer.layers.stack import Stack
from sortformer.layers.universal import HaltingStack, UniversalStack

__all__ = ["build_stack"]


def build_stack(
    depth: Depth, dim: int, attention: tuple[AttentionConfig, ...], block: Callable[[AttentionConfig, int], nn.Module]
) -> Stack:
    """Return a stack for frames of ``dim`` channels, of blocks made from each layer's attention and number."""
    match depth:
        case StackedDepth():
            return Stack(block(each, layer) for layer, each in enumerate(attention))
        case ReversibleDepth():
            return ReversibleStack(block(each, layer) for layer, each in enumerate(attention))
        case UniversalDepth():
            shared, coordinates = attention[0], attention[0].position == "coordinates"
            if coordinates:  # they change from time to time: the stack adds them, not the block
                shared = replace(shared, position="none")
            if depth.halting:
                return HaltingStack(
                    block(shared, 0), len(attention), dim, coordinates=coordinates, halt_at=depth.halt_at
                )
            return UniversalStack(block(shared, 0), len(attention), coordinates=coordinates)

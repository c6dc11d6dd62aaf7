"""From the config of an encoder or a head to the stack of its blocks."""

from collections.abc import Callable
from dataclasses import replace

from torch import nn

from sortformer.config.attention import AttentionConfig
from sortformer.config.depth import ReversibleDepth, StackedDepth, UniversalDepth
from sortformer.config.model import EncoderConfig, HeadConfig
from sortformer.layers.reversible import ReversibleStack
from sortformer.layers.stack import Stack
from sortformer.layers.universal import HaltingStack, UniversalStack

__all__ = ["build_stack"]


def build_stack(config: EncoderConfig | HeadConfig, kind: Callable[..., nn.Module]) -> Stack:
    """Return the blocks of an encoder or head; ``kind`` makes one, given the options that all kinds share."""
    attention, depth = config.layer_attention, config.depth

    def block(each: AttentionConfig, layer: int) -> nn.Module:
        return kind(
            config.dim,
            config.heads,
            config.ff_dim,
            attention=each,
            depth=layer,
            dropout=config.dropout,
            residual=config.residual,
            ff_chunk_frames=config.ff_chunk_frames,
        )

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
                    block(shared, 0), len(attention), config.dim, coordinates=coordinates, halt_at=depth.halt_at
                )
            return UniversalStack(block(shared, 0), len(attention), coordinates=coordinates)

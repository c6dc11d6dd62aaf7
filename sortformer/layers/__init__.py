"""The blocks that a model is stacked from: subsampling, Conformer and Transformer blocks, upsampling."""

from sortformer.layers.build import build_stack
from sortformer.layers.conformer import ConformerBlock
from sortformer.layers.subsampling import DepthwiseStriding, FrameStacking
from sortformer.layers.transformer import TransformerBlock
from sortformer.layers.upsampling import SubframeUpsampling

__all__ = [
    "ConformerBlock",
    "DepthwiseStriding",
    "FrameStacking",
    "SubframeUpsampling",
    "TransformerBlock",
    "build_stack",
]

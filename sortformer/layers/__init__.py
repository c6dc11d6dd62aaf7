"""The blocks that a model is stacked from: subsampling, Conformer and Transformer blocks."""

from sortformer.layers.conformer import ConformerBlock
from sortformer.layers.subsampling import DepthwiseStriding, FrameStacking
from sortformer.layers.transformer import TransformerBlock

__all__ = ["ConformerBlock", "DepthwiseStriding", "FrameStacking", "TransformerBlock"]

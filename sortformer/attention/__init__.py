"""Attention: one wrapper with the projections, and one file per core; ``protocol`` defines the interface of cores."""

from sortformer.attention.build import build_core
from sortformer.attention.drawn import DrawnAttention, drawn, redraw
from sortformer.attention.local import local_attention
from sortformer.attention.multi_head import AttentionState, MultiHeadAttention
from sortformer.attention.protocol import Context, Core, LayerStep, RecurrentCore, add_losses
from sortformer.attention.softmax import attend

__all__ = [
    "AttentionState",
    "Context",
    "Core",
    "DrawnAttention",
    "LayerStep",
    "MultiHeadAttention",
    "RecurrentCore",
    "add_losses",
    "attend",
    "build_core",
    "drawn",
    "local_attention",
    "redraw",
]

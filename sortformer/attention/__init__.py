"""Attention: one wrapper that owns the projections, one small file a core.

A core is called with query, key and value (B, H, T, d), and ``valid`` (B, T), True where a frame may be attended to
(None: everywhere).
"""

from sortformer.attention.full import full_attention
from sortformer.attention.local import local_attention
from sortformer.attention.multi_head import MultiHeadAttention

__all__ = ["MultiHeadAttention", "full_attention", "local_attention"]

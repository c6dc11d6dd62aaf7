"""Full attention over PyTorch's fused kernels."""

import torch
from torch import Tensor, nn

__all__ = ["MASKED_SCORE", "full_attention"]

# Finite, so that a row of which nothing is valid gives a finite (and later masked) mean instead of NaN gradients.
MASKED_SCORE = -1e9


def full_attention(query: Tensor, key: Tensor, value: Tensor, valid: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return softmax((q k^T + bias) / sqrt(d)) v, shape (B, H, T, d): Vaswani et al., arXiv 1706.03762, equation 1."""
    mask = None if bias is None else bias * query.shape[-1] ** -0.5
    if valid is not None:
        keys = torch.zeros(valid.shape, dtype=query.dtype, device=query.device).masked_fill(~valid, MASKED_SCORE)
        mask = keys[:, None, None] if mask is None else mask + keys[:, None, None]
    return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)

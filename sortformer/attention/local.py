"""Local attention: a frame sees a fixed number of frames on each side, in time and memory linear in the length."""

import torch
from torch import Tensor, nn

from sortformer.attention.full import MASKED_SCORE

__all__ = ["local_attention"]


def local_attention(query: Tensor, key: Tensor, value: Tensor, valid: Tensor | None, window: int) -> Tensor:
    """Return attention (B, H, T, d) over the keys with ``|i - j| <= window``.

    Beltagy et al., "Longformer", arXiv 2004.05150, section 3.1, without global tokens. Computed in blocks of ``window``
    queries against their own block of keys and its two neighbours.
    """
    batch, heads, frames, head_dim = query.shape
    blocks = -(-frames // window)
    tail = blocks * window - frames
    query = nn.functional.pad(query, (0, 0, 0, tail)).view(batch, heads, blocks, window, head_dim)
    key, value = (
        nn.functional.pad(x, (0, 0, window, window + tail)).unfold(2, 3 * window, window) for x in (key, value)
    )
    if valid is None:
        valid = torch.ones(batch, frames, dtype=torch.bool, device=query.device)
    key_valid = nn.functional.pad(valid, (window, window + tail)).unfold(1, 3 * window, window)
    offset = torch.arange(3 * window, device=query.device) - window - torch.arange(window, device=query.device)[:, None]
    allowed = (offset.abs() <= window) & key_valid[:, :, None]  # (B, blocks, window, 3 * window)
    mask = torch.zeros(allowed.shape, dtype=query.dtype, device=query.device).masked_fill(~allowed, MASKED_SCORE)
    out = nn.functional.scaled_dot_product_attention(
        query.transpose(1, 2).flatten(0, 1),
        key.permute(0, 2, 1, 4, 3).flatten(0, 1),
        value.permute(0, 2, 1, 4, 3).flatten(0, 1),
        attn_mask=mask.flatten(0, 1)[:, None],
    )
    return out.view(batch, blocks, heads, window, head_dim).transpose(1, 2).flatten(2, 3)[:, :, :frames]

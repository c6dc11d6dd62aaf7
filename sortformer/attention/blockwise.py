"""Blockwise attention: each block of queries attends to one block of keys, a different one in each head."""

import torch
from torch import Tensor

from sortformer.attention.blocks import cut, fitting, joined
from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import expectation

__all__ = ["BlockwiseAttention"]


class BlockwiseAttention(Core):
    """Qiu et al., arXiv 1911.02972, section 3, with the shifts by 0, 1, 2, ... blocks as the heads' permutations.

    Shifts wrap around after the recording's own last block, whatever it is padded to.
    """

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        batch, heads, frames, dim = query.shape
        block = fitting(self.block, frames)
        valid = cut(context.valid[:, None], block)[:, 0]
        query, key, value = (cut(x, block) for x in (query, key, value))
        number = torch.arange(query.shape[2], device=query.device)
        blocks = (valid.any(-1) * (number + 1)).amax(dim=1).clamp(min=1)  # (B,) up to the last with a valid frame
        shift = torch.arange(heads, device=query.device)[:, None]
        partner = (number + shift) % blocks[:, None, None]  # (B, H, n)
        where = partner[..., None, None].expand(batch, heads, -1, block, dim)
        seen = valid[:, None].expand(-1, heads, -1, -1).gather(2, where[..., 0])
        mixed = expectation(query, key.gather(2, where), value.gather(2, where), seen[..., None, :])
        return joined(mixed, frames)

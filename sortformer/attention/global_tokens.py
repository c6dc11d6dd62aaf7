"""Local attention and learned global tokens, which attend to the whole recording and which every frame attends to."""

import torch
from torch import Tensor, nn

from sortformer.attention.pattern import PatternAttention
from sortformer.attention.patterns import GlobalLocal
from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import expectation

__all__ = ["GlobalTokenAttention"]


class GlobalTokenAttention(Core):
    """Ainslie et al., "ETC", arXiv 2004.08483, section 2, in one layer: only frames are passed to the next layer.

    First the tokens, with learned queries, attend to all frames and to the tokens' learned keys and values; then each
    frame attends to its window and to the tokens, with their learned keys and, as values, their outputs.
    """

    def __init__(self, heads: int, head_dim: int, window: int, tokens: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (
            nn.Parameter(nn.functional.normalize(torch.randn(heads, tokens, head_dim), dim=-1)) for _ in range(3)
        )
        self.local = PatternAttention(GlobalLocal(window, tokens), causal=False)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        rows, tokens = query.shape[0], self.query.shape[1]
        valid = nn.functional.pad(context.valid, (tokens, 0), value=True)
        key, learned = (
            torch.cat((token.expand(rows, -1, -1, -1), x), dim=2) for token, x in ((self.key, key), (self.value, value))
        )
        read = expectation(self.query, key, learned, valid[:, None, None])
        return self.local(query, key, torch.cat((read, value), dim=2), Context(valid, past=tokens))

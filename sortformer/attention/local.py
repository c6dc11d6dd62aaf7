"""Local attention: a frame attends to a fixed number of frames on each side, in linear time and memory."""

import torch
from torch import Tensor, nn

from sortformer.attention.protocol import Context, RecurrentCore
from sortformer.attention.softmax import attend, tiles
from sortformer.memory.key_values import KeyValues

__all__ = ["LocalAttention", "local_attention"]


class LocalAttention(RecurrentCore):
    """A frame attends to a window centred on it or, if causal, to the half that ends with it."""

    def __init__(self, window: int, causal: bool) -> None:
        super().__init__()
        self.window = window
        self.causal = causal

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        return local_attention(query, key, value, context.valid, self.window, causal=self.causal)

    def init_state(self, query: Tensor) -> KeyValues:
        return KeyValues.start(query)

    def step(
        self, query: Tensor, key: Tensor, value: Tensor, context: Context, state: KeyValues
    ) -> tuple[Tensor, KeyValues]:
        past, known = state.key.shape[2], state.then(key, value, context.valid)
        at = torch.arange(known.key.shape[2], device=query.device)
        out = [query[:, :, :0]]
        for rows in tiles(query.shape[2]):
            seen = slice(max(0, past + rows.start - self.window), past + rows.stop)
            behind = at[past:][rows, None] - at[seen]
            near = (behind <= self.window) & (behind >= 0)
            asking, pairs = query[:, :, rows], near & known.valid[:, None, None, seen]
            out.append(attend(asking, known.key[:, :, seen], known.value[:, :, seen], pairs))
        return torch.cat(out, dim=2), known.last(self.window)


def local_attention(
    query: Tensor, key: Tensor, value: Tensor, valid: Tensor, window: int, *, causal: bool = False
) -> Tensor:
    """Return attention (B, H, T, d) over the keys with ``|i - j| <= window``, and ``j <= i`` if causal.

    Beltagy et al., "Longformer", arXiv 2004.05150, section 3.1, without global tokens. Computed in blocks of ``window``
    queries against their own block of keys and its two neighbours; as full attention if every frame is within reach.
    """
    batch, _, frames, _ = query.shape
    if isinstance(frames, int):  # not a symbol, as in the export of a graph for any length
        window = max(1, min(window, frames))  # no frame is further away
        if frames <= window + 1 and not causal:
            return attend(query, key, value, valid[:, None, None])
    blocks = (frames + window - 1) // window  # not of a negative number: ONNX rounds those up
    tail = blocks * window - frames
    query = nn.functional.pad(query, (0, 0, 0, tail)).unflatten(2, (blocks, window))
    key, value, reachable = (
        _with_neighbours(nn.functional.pad(x, (0, 0, window, window + tail)).unflatten(2, (blocks + 2, window)))
        for x in (key, value, valid[:, None, :, None])
    )
    offset = torch.arange(3 * window, device=query.device) - window - torch.arange(window, device=query.device)[:, None]
    near = (offset.abs() <= window) & (offset <= 0) if causal else offset.abs() <= window
    allowed = near & reachable.transpose(-1, -2)  # (B, 1, blocks, window, 3 * window)
    # Blocks become rows of the batch, as the fused kernels expect.
    query, key, value, allowed = (x.transpose(1, 2).flatten(0, 1) for x in (query, key, value, allowed))
    out = attend(query, key, value, allowed)
    return out.unflatten(0, (batch, blocks)).transpose(1, 2).flatten(2, 3)[:, :, :frames]


def _with_neighbours(x: Tensor) -> Tensor:
    """Join each block of (B, H, n + 2, w, d), but for the first and last, with its neighbours: (B, H, n, 3 w, d)."""
    return torch.cat((x[:, :, :-2], x[:, :, 1:-1], x[:, :, 2:]), dim=3)

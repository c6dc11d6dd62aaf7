"""Reformer: frames in the same hash bucket attend to each other, in chunks of the order by bucket."""

import torch
from torch import Tensor, nn

from sortformer.attention.blocks import cut, fitting, joined
from sortformer.attention.protocol import Context, Core
from sortformer.attention.softmax import masked_score, scores

__all__ = ["ReformerAttention"]

_SELF_SCORE = -1e5
"""A frame's score for itself: it attends to itself only if to nothing else (section 2), but above masked scores."""


class ReformerAttention(Core):
    """Kitaev et al., arXiv 2001.04451, section 2: shared queries and keys, LSH by random rotations, several rounds.

    Keys are the queries, normalised. In each round the frames are sorted by bucket, then by time, and split into
    chunks; a frame attends to those of its bucket in its own chunk and the previous one. Rounds are weighted by their
    sums of exponentials. Two things differ from the paper: a pair that attends in two rounds counts twice (in its
    appendix A once), and the rotations are drawn once.
    """

    shares_queries = True

    def __init__(self, head_dim: int, buckets: int, rounds: int, chunk: int) -> None:
        super().__init__()
        self.buckets = buckets
        self.rounds = rounds
        self.chunk = chunk
        self.rotations: Tensor
        self.register_buffer("rotations", torch.randn(rounds, head_dim, max(1, buckets // 2)))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Return (B, H, T, d) from query and value; the key is the query. See :class:`Core`."""
        del key
        valid = context.valid[:, None].expand(-1, query.shape[1], -1)
        unit = nn.functional.normalize(query, dim=-1)
        mixed, weight = zip(*(self._round(query, unit, value, valid, r) for r in range(self.rounds)), strict=True)
        shares = torch.stack(weight).softmax(dim=0)
        return (shares[..., None] * torch.stack(mixed)).sum(dim=0)

    def bucket(self, query: Tensor, number: int) -> Tensor:
        """Return the bucket (B, H, T) of each query in one round: the direction closest to it."""
        if self.buckets == 1:
            return torch.zeros(query.shape[:3], dtype=torch.long, device=query.device)
        rotated = query @ self.rotations[number].to(query.dtype)
        return torch.cat([rotated, -rotated], dim=-1).argmax(dim=-1)

    def _round(self, query: Tensor, unit: Tensor, value: Tensor, valid: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Return the output (B, H, T, d) of one round, and the log-sum-exp (B, H, T) of its scores."""
        frames = query.shape[2]
        bucket = self.bucket(query, number).masked_fill(~valid, self.buckets)  # padding is sorted last
        order = bucket.argsort(dim=-1, stable=True)
        chunk = fitting(self.chunk, frames)

        def chunks(x: Tensor, fill: int = 0) -> Tensor:
            """Sort (B, H, T, ...), and return its chunks after the ones before them, (B, H, n, 2 chunk, ...)."""
            x = x.gather(2, order if x.dim() == 3 else order[..., None].expand(x.shape))
            blocks = cut(torch.cat((torch.full_like(x[:, :, :chunk], fill), x), dim=2), chunk, fill)
            return torch.cat((blocks[:, :, :-1], blocks[:, :, 1:]), dim=3)

        at = torch.arange(frames, device=query.device).expand(bucket.shape)
        keys, values, theirs, then = chunks(unit), chunks(value), chunks(bucket, self.buckets), chunks(at, -1)
        asked, mine, when = (x[:, :, :, chunk:] for x in (chunks(query), theirs, then))
        allowed = (mine[..., None] == theirs[..., None, :]) & (theirs < self.buckets)[..., None, :]
        logits = scores(asked, keys)
        nothing = masked_score(logits)
        logits = logits.masked_fill(when[..., None] == then[..., None, :], max(_SELF_SCORE, nothing / 2))
        logits = logits.masked_fill(~allowed, nothing)
        total = logits.logsumexp(dim=-1)
        mixed = (logits - total[..., None]).exp() @ values
        back = order.argsort(dim=-1)
        mixed, total = (joined(x, frames) for x in (mixed, total))
        return mixed.gather(2, back[..., None].expand(value.shape)), total.gather(2, back)

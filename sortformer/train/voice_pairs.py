"""A pairwise loss on voices: stretches of one voice should be closer than a threshold, those of two farther apart."""

import torch
from torch import Tensor, nn

__all__ = ["voice_pairs"]

_SCALE = 16.0
_STRETCH_FRAMES = (3, 8)  # shortest and longest stretch that is compared as one


def voice_pairs(emb: Tensor, activity: Tensor, valid: Tensor, threshold: float = 0.4) -> Tensor:
    """Return the loss, in nats, of telling the voices of each conversation apart by cosine distance.

    Clustering merges two groups of stretches if their mean cosine distance is below a threshold, the same for all
    recordings. Neither a teacher's table nor the head trains that. Here each pair of single-speaker stretches is an
    example of logistic regression with fixed parameters, ``threshold`` and a scale of 16; pairs of one voice and pairs
    of two have equal weight in total. Only voices of one conversation are compared, as in EEND-vector clustering
    (Kinoshita et al., arXiv 2105.09040): across conversations the channel would tell more than the voice.

    Args:
        emb: (B, T, D) the encoder's embeddings.
        activity: (B, T, S) zeros and ones.
        valid: (B, T) bool. A conversation is weighted by its valid frames.
        threshold: cosine distance at which one voice is as likely as two.
    """
    shortest, longest = _STRETCH_FRAMES
    # Frames that are not valid may hold anything, even NaN.
    one_speaks = (valid & (activity.sum(dim=2) == 1))[:, :, None]
    alone = _pieces(activity.masked_fill(~one_speaks, 0.0), longest)
    unit = _pieces(nn.functional.normalize(emb.float().masked_fill(~one_speaks, 0.0), dim=2), longest)
    stretch = nn.functional.normalize(torch.einsum("bnfs,bnfd->bnsd", alone, unit), dim=3).flatten(1, 2)
    heard = (alone.sum(dim=2) >= shortest).flatten(1, 2)
    voice = torch.arange(activity.shape[2], device=emb.device).repeat(alone.shape[1])
    pair = heard[:, :, None] & heard[:, None, :]
    one = pair & (voice[:, None] == voice) & ~torch.eye(len(voice), dtype=torch.bool, device=emb.device)
    two = pair & (voice[:, None] != voice)
    logits = _SCALE * (stretch @ stretch.mT - (1.0 - threshold))
    loss = _mean(nn.functional.softplus(-logits), one) + _mean(nn.functional.softplus(logits), two)
    weight = valid.sum(dim=1)
    return (loss * weight).sum() / weight.sum().clamp(min=1)


def _pieces(frames: Tensor, length: int) -> Tensor:
    """Split (B, T, C) into (B, N, length, C), the last piece padded with zeros."""
    return nn.functional.pad(frames, (0, 0, 0, -frames.shape[1] % length)).unflatten(1, (-1, length))


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    """Return the mean of the chosen values of each conversation, 0 if there are none."""
    return (values * chosen).sum(dim=(1, 2)) / chosen.sum(dim=(1, 2)).clamp(min=1)

"""The arrival-order speaker cache (AOSC): the frames of the past that distinguish the speakers best.

Medennikov et al., "Streaming Sortformer", arXiv 2507.18446, with the constants and the order of operations of NeMo
3.0.0 (``sortformer_modules.py``, whose methods are named where ours follow them). Axes: B streams, T frames, S slots, D
channels. ``torch.topk`` breaks ties arbitrarily, as it does there; rows are not padded here, so that its choice depends
on nothing else.
"""

import math

import torch
from torch import Tensor, nn

from sortformer.config.stream import SpeakerCacheConfig
from sortformer.masks import length_mask
from sortformer.ragged import take

__all__ = ["add_silence", "boosted", "chosen", "compress", "scores", "without_overlap"]


def compress(emb: Tensor, probs: Tensor, silence: Tensor, config: SpeakerCacheConfig) -> tuple[Tensor, Tensor]:
    """Return the M = ``config.frames`` best frames (B, M, D) of ``emb`` (B, T, D), T > M, and their probabilities.

    The result is ordered by slot, and by time within a slot; after each slot, and in unused places, it has the
    ``silence`` embedding (B, D) with probabilities 0. NeMo: ``_compress_spkcache``.
    """
    budget = max(0, config.frames // probs.shape[2] - config.silence_frames)  # NeMo: spkcache_len_per_spk
    ranked = scores(probs, config.probability_floor)
    ranked = without_overlap(ranked, probs, math.floor(budget * config.min_positive_share))
    newcomer = torch.arange(probs.shape[1], device=probs.device) >= config.frames
    ranked = ranked + config.newcomer_bonus * newcomer[:, None]  # NeMo: scores_boost_latest
    ranked = boosted(ranked, math.floor(budget * config.strong_share), 2 * math.log(2))  # strong and
    ranked = boosted(ranked, math.floor(budget * config.weak_share), math.log(2))  # weak boosting: _boost_topk_scores
    frame, taken = chosen(ranked, config.frames, config.silence_frames)
    kept = torch.where(taken[..., None], take(emb, frame, taken), silence[:, None].to(emb.dtype))
    return kept, take(probs, frame, taken)


def scores(probs: Tensor, floor: float) -> Tensor:
    """Return the log score (B, T, S) of each slot speaking alone: above 0 if its probability exceeds one half.

    s_tk = ln p_tk - ln(1 - p_tk) + sum_j ln(1 - p_tj) + ln 2, with probabilities clamped to at least ``floor``.
    NeMo: ``_get_log_pred_scores``.
    """
    speaks = probs.clamp(min=floor).log()
    is_quiet = (1.0 - probs).clamp(min=floor).log()
    return speaks - is_quiet + is_quiet.sum(dim=2, keepdim=True) - math.log(0.5)  # s_tk of _get_log_pred_scores


def without_overlap(ranked: Tensor, probs: Tensor, enough: int) -> Tensor:
    """Return scores (B, T, S), -inf where a slot does not speak or, if it has ``enough`` frames alone, is not alone.

    A slot speaks where its probability exceeds 1/2, and alone where its score exceeds 0. NeMo: ``_disable_low_scores``.
    """
    speaks = probs > 0.5
    alone = speaks & (ranked > 0)
    plenty = alone.sum(dim=1, keepdim=True) >= enough  # min_pos_scores_per_spk of _disable_low_scores
    return ranked.masked_fill(~torch.where(plenty, alone, speaks), -torch.inf)


def boosted(ranked: Tensor, count: int, bonus: float) -> Tensor:
    """Add ``bonus`` to the ``count`` greatest scores (B, T, S) of each slot. NeMo: ``_boost_topk_scores``."""
    best = ranked.topk(min(count, ranked.shape[1]), dim=1, sorted=False).indices
    return ranked.scatter_add(1, best, torch.full_like(best, bonus, dtype=ranked.dtype))


def chosen(ranked: Tensor, frames: int, silence_frames: int) -> tuple[Tensor, Tensor]:
    """Return the index of the frame (B, M) in each of the M = ``frames`` places, and whether there is one (B, M).

    Places without a frame are silence: ``silence_frames`` after each slot, which precede any score, and the last ones
    if fewer frames have a score above -inf. Several slots may choose one frame. NeMo: ``_get_topk_indices``.
    """
    batch, count, slots = ranked.shape
    width = count + silence_frames
    contest = nn.functional.pad(ranked, (0, 0, 0, silence_frames), value=torch.inf)
    contest = contest.transpose(1, 2).reshape(batch, slots * width)  # index = slot * width + frame
    best = contest.topk(frames, dim=1, sorted=False)
    place = best.indices.masked_fill(best.values == -torch.inf, slots * width).sort(dim=1).values
    frame = place % width  # topk_indices_sorted of _get_topk_indices
    return frame, (place < slots * width) & (frame < count)


def add_silence(
    mean: Tensor, count: Tensor, emb: Tensor, probs: Tensor, length: Tensor, threshold: float
) -> tuple[Tensor, Tensor]:
    """Update the running mean (B, D) of silent frames and their number (B,) by those of ``emb`` (B, T, D).

    A frame is silent where its probabilities (B, T, S) sum to less than ``threshold``; the first ``length`` (B,) frames
    of a row count. NeMo: ``_get_silence_profile``.
    """
    silent = (probs.sum(dim=2) < threshold) & length_mask(length, probs.shape[1])
    total = count + silent.sum(dim=1)
    summed = mean * count[:, None] + (emb * silent[..., None]).sum(dim=1)  # total_sil_sum of _get_silence_profile
    fresh = silent.any(dim=1, keepdim=True)
    return torch.where(fresh, summed / total.clamp(min=1)[:, None], mean), total

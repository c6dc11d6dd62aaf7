"""Speaker clustering in a stream: its speech is assigned to the voices heard so far, or to new ones.

A stream keeps the encoder's embeddings of frames that have left the FIFO, computed in their original context (which
frames in the speaker cache have lost). In each step these, the FIFO and the new frames are clustered anew, as if they
were a recording, and each cluster keeps the column in which most of its past was returned. So a speaker who was split
in two is merged again, and two who were merged are split as soon as enough of them has been heard.
"""

from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from sortformer.clustering import alone, by_voice
from sortformer.config.clustering import ClusteringConfig
from sortformer.enrolled import names_of_voices
from sortformer.shares import in_finer_frames
from sortformer.streaming.protocol import Chunk
from sortformer.streaming.state import StreamState

__all__ = ["by_known_voice", "rows_by_voice", "worth_keeping"]

_LEAST_COMMON = 0.5  # frames in which a voice and a column both speak, if the voice is to keep the column
# Stretches are shorter than in whole recordings, because new speakers have said little yet; means of fewer frames
# scatter more, so that distances are larger by about this factor.
_STRETCH_FRAMES = (3, 8)
_SCATTER = 1.2
_ALTERNATING = 0.9  # as in whole recordings, but a speaker cache keeps less of the order in which voices were heard


def rows_by_voice(
    probs: Tensor, emb: Tensor, state: StreamState, chunk: Chunk, config: ClusteringConfig, most: int
) -> tuple[Tensor, Tensor]:
    """Return speaker activity in the input frames of a step, (B, T, S), and in those of ``state.voices``, (B, V, S).

    They have a column for each slot of the stream, which may have more than the model. Columns are assigned by
    :func:`by_known_voice`, except in the speaker cache, where they do not change.

    Args:
        probs: (B, T, s) of [speaker cache | FIFO | chunk with its contexts], at a multiple of the embeddings' rate.
        emb: (B, T', D), where T is a multiple of T'.
        state: before the step.
        chunk: the new frames; rows of length 0 do not change.
    """
    finer = probs.shape[1] // emb.shape[1]
    past = state.voices.probs.clone()
    probs = nn.functional.pad(probs, (0, past.shape[2] - probs.shape[2]))
    pooled, found = probs.unflatten(1, (-1, finer)).mean(dim=2), probs.clone()
    new = chunk.left + chunk.length + chunk.right
    counts = torch.stack([state.voices.length, state.cache.length, state.fifo.length, new], dim=1).tolist()
    for row in torch.nonzero(chunk.length)[:, 0].tolist():
        kept, cached, queued, coming = counts[row]
        end = cached + queued + coming
        here = slice(cached * finer, end * finer)
        found[row, : here.start] = state.cache.probs[row, :cached].repeat_interleave(finer, dim=0)
        said = torch.cat([past[row, :kept], pooled[row, cached:end]])
        heard = torch.cat([state.voices.emb[row, :kept], emb[row, cached:end]])
        before = state.returned[row, : kept + queued]
        voices = by_known_voice(_array(said), _array(heard), _array(before), config, most, _array(state.known[row]))
        past[row, :kept] = torch.from_numpy(voices[:kept])
        found[row, here] = torch.from_numpy(in_finer_frames(voices[kept:], _array(probs[row, here]), finer))
    return found, past


def worth_keeping(probs: np.ndarray, frames: int) -> np.ndarray:
    """Return which frames (n,) of a past (T, S) tell voices apart, in order, ``frames`` at most.

    These are the frames in which one speaker is alone, and one after each run of them, as a separator. If there are too
    many, the oldest frames of the speakers with the most are dropped, so that every speaker is remembered.
    """
    index = np.flatnonzero(_and_after(alone(probs)))
    single = alone(probs[index])
    own = single[:, None] & (probs[index].argmax(axis=1)[:, None] == np.arange(probs.shape[1]))
    count = own.sum(axis=0)
    # The greatest number of frames per speaker that fits.
    fits = np.minimum(count[:, None], np.arange(1, count.max() + 1)).sum(axis=0) <= frames - np.count_nonzero(~single)
    later = np.cumsum(own[::-1], axis=0)[::-1]  # frames of each speaker from here on
    stay = ~single | (own & (later <= np.count_nonzero(fits))).any(axis=1)
    return index[stay][_and_after(single[stay])]


def by_known_voice(
    probs: np.ndarray,
    emb: np.ndarray,
    before: np.ndarray,
    config: ClusteringConfig,
    most: int,
    known: np.ndarray | None = None,
) -> np.ndarray:
    """Cluster (T, S) probabilities by voice, with each voice in the column that it had before.

    The sum of a frame's probabilities, how many speak, is kept (up to the number of voices). A new voice gets the first
    column that has not been used.

    Args:
        probs: (T, S) probabilities of the model's slots, in any order.
        emb: (T, D) the encoder's embeddings.
        before: (t, S) what was returned for the first t frames, t <= T.
        config: the clustering.
        most: the number of columns that may be used, the first ones.
        known: (S, D) mean directions of the voices of enrolled speakers, by column; zero for other columns.
    """
    apart = replace(config, threshold=min(_SCATTER * config.threshold, 1.99))
    people = {} if known is None else {int(slot): known[slot] for slot in np.flatnonzero(known.any(axis=1))}
    # These are slots if there is too little speech to cluster.
    voices = by_voice(
        probs,
        emb,
        apart,
        most=most,
        stretch_frames=_STRETCH_FRAMES,
        alternating=_ALTERNATING,
        known=np.stack([*people.values()]) if people else None,
    )
    with np.errstate(under="ignore"):  # also where a program lets numpy raise
        common = np.square(voices[: len(before)]).T @ np.square(before[:, :most])
    owned, worth = names_of_voices(voices, emb, people, apart.threshold), common.copy()
    worth[[*owned], [*owned.values()]] = 1.0 + common.sum()
    pairs = zip(*linear_sum_assignment(worth, maximize=True), strict=True)
    column = {voice: slot for voice, slot in pairs if common[voice, slot] >= _LEAST_COMMON or owned.get(voice) == slot}
    had = set(np.flatnonzero((before > 0.5).any(axis=0)).tolist())
    free = sorted(set(range(most)) - set(column.values()), key=lambda slot: (slot in people, slot in had, slot))
    new = [voice for voice in range(voices.shape[1]) if voice not in column]  # in order of arrival
    column.update(zip(new, free, strict=False))
    found = np.zeros_like(probs)
    for voice, slot in column.items():
        found[:, slot] = voices[:, voice]
    return found


def _and_after(single: np.ndarray) -> np.ndarray:
    """Return a mask of frames (T,) and the first frame after each run of them."""
    return single | np.concatenate([[False], single[:-1]])


def _array(rows: Tensor) -> np.ndarray:
    return rows.float().cpu().numpy()

"""How the speech of each frame is shared among voices: the nearest ones first, smoothed over time, none above 1."""

import numpy as np

__all__ = ["in_finer_frames", "shared_out", "shares", "staying"]

_SHARPNESS = 5.0  # log-likelihoods are this times the cosine times the speech in the frame
_STAYS = 0.9  # probability that the next frame has the same voice
_BLOCK_FRAMES = 64  # a frame's voice depends on so many frames on each side, or up to twice as many


def shares(unit: np.ndarray, means: np.ndarray, spoken: np.ndarray) -> np.ndarray:
    """Distribute the speech (T,) of each frame among voices by similarity; return (T, K), none above 1.

    ``unit`` (T, D) are the directions of the frames' embeddings, ``means`` (K, D) those of the voices.
    """
    said = np.minimum(spoken, 1.0)[:, None]
    return shared_out(staying(np.exp(_SHARPNESS * said * (unit @ means.T - 1))), spoken)


def staying(near: np.ndarray) -> np.ndarray:
    """Return the posterior of each voice in each frame (T, K), scaled to 1 for the likeliest, smoothed over time.

    ``near`` are the frame likelihoods. The forward-backward algorithm of a hidden Markov model whose state is the voice
    (Rabiner, "A tutorial on hidden Markov models", 1989, eq. 27).
    """
    before, after = _up_to(np.stack([near, near[::-1]]))
    likely = before * after[::-1] / near
    return likely / likely.max(axis=1, keepdims=True)


def _up_to(near: np.ndarray) -> np.ndarray:
    """Return the forward probabilities of each voice (N, T, K), given the frame and those before it.

    Blocks of frames are processed side by side, each from the beginning of the block before it on. Where all voices are
    as likely, each step forgets a tenth or more, and what was earlier weighs less than a thousandth; it would count
    where two of many voices alone are likely, both as much, for all these frames.
    """
    sequences, count, voices = near.shape
    other = (1 - _STAYS) / max(1, voices - 1)
    room = -count % _BLOCK_FRAMES
    padded = np.pad(near, ((0, 0), (_BLOCK_FRAMES, room), (0, 0)), constant_values=1.0)
    blocks = padded.reshape(sequences, -1, _BLOCK_FRAMES, voices)
    given = blocks[:, 1:].copy()
    state = np.ones_like(given[:, :, 0])
    for part in (blocks[:, :-1], blocks[:, 1:]):
        for frame in range(_BLOCK_FRAMES):
            state = (other * state.sum(axis=2, keepdims=True) + (_STAYS - other) * state) * part[:, :, frame]
            state /= state.sum(axis=2, keepdims=True)
            given[:, :, frame] = state
    return given.reshape(sequences, -1, voices)[:, :count]


def shared_out(weight: np.ndarray, spoken: np.ndarray) -> np.ndarray:
    """Distribute the speech (T,) of each frame by weights (T, K), none above 1; the excess over K is dropped."""
    wanted = np.minimum(spoken, weight.shape[1])[:, None]
    share = np.zeros_like(weight)
    # The excess over 1 of the nearest voice goes to the next ones: after at most K rounds all is distributed.
    for _ in range(weight.shape[1]):
        open_weight = np.where(share < 1, np.maximum(weight, 1e-6), 0.0)
        rest = wanted - share.sum(axis=1, keepdims=True)
        share = np.minimum(1.0, share + rest * open_weight / np.maximum(open_weight.sum(axis=1, keepdims=True), 1e-12))
    return share


def in_finer_frames(share: np.ndarray, probs: np.ndarray, finer: int) -> np.ndarray:
    """Distribute the speech of frames (U, S), ``finer`` per frame of ``share`` (T, K), in its proportions: (U, K)."""
    if finer == 1:
        return share
    found, heard = np.zeros((len(probs), share.shape[1]), share.dtype), share.any(axis=0)
    weight = np.repeat(share[:, heard], finer, axis=0)[: len(probs)]
    found[:, heard] = shared_out(weight, probs.sum(axis=1))
    return found

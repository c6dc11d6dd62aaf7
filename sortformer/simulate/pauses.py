"""Real sounds without speech, from the pauses in recordings of voices: breath, lips, clothes, the room."""

import hashlib

import numpy as np

from sortformer.grid import HOP_SAMPLES
from sortformer.simulate.ranges import log_uniform
from sortformer.simulate.speech_activity import active_runs
from sortformer.simulate.voice_bank import VoiceBank

__all__ = ["Pauses"]

_MARGIN = 4  # hops next to speech that are excluded: reverberation, and speech too soft to be detected
_SHORTEST = 12  # hops
_LONGEST = 200  # hops
_SPEED = (0.7, 1.4)
_FADE = np.linspace(0, 1, 160)  # 10 ms


class Pauses:
    """The pauses of the recordings of a bank, at least 120 ms each and 40 ms away from speech.

    Attributes:
        start, end: (N,) int64, hops of the bank.
    """

    def __init__(self, bank: VoiceBank) -> None:
        inside = np.zeros(len(bank.activity), dtype=bool)  # a pool uses only a part of the audio that it shares
        for start, end in zip(bank.utterance_start, bank.utterance_end, strict=True):
            inside[start + 1 : end] = True  # without the first hop, so that no two recordings touch
        starts, ends = active_runs(~bank.activity & inside)
        lasting = ends - starts >= _SHORTEST + 2 * _MARGIN
        self.start, self.end = starts[lasting] + _MARGIN, ends[lasting] - _MARGIN
        self._audio = bank.audio

    def __len__(self) -> int:
        return len(self.start)

    def fingerprint(self) -> str:
        """Return a SHA-256 of these pauses and their audio."""
        digest = hashlib.sha256(self.start.tobytes() + self.end.tobytes())
        for start, end in zip(self.start, self.end, strict=True):
            digest.update(self._audio[start * HOP_SAMPLES : end * HOP_SAMPLES].tobytes())
        return digest.hexdigest()

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return up to two seconds of a pause, played faster or slower, as (n,) of any level."""
        chosen = int(rng.integers(len(self)))
        length = min(int(self.end[chosen] - self.start[chosen]), _LONGEST)
        first = int(rng.integers(self.start[chosen], self.end[chosen] - length + 1))
        heard = self._audio[first * HOP_SAMPLES : (first + length) * HOP_SAMPLES]
        speed = log_uniform(rng, _SPEED)
        sound = np.interp(np.arange(0, len(heard) - 1, speed), np.arange(len(heard)), heard)
        sound[: len(_FADE)] *= _FADE
        sound[-len(_FADE) :] *= _FADE[::-1]
        return sound

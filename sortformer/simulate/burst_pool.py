"""A pool of bursts made in advance: making each anew takes longer than all the rest of a conversation."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sortformer.grid import SAMPLE_RATE
from sortformer.simulate.bursts import KINDS, LEVEL_SPREAD_DB, burst_of_kind, drawn_kind
from sortformer.simulate.cache import cached
from sortformer.simulate.events import FADE_SAMPLES, Delivery, Note
from sortformer.simulate.pauses import Pauses
from sortformer.simulate.ranges import log_uniform

__all__ = ["BurstPool"]

_LAYOUT = 2  # part of the cache's key: increment it when the stored arrays change
_SPEED = (0.8, 1.25)  # each is played faster or slower, so that none is repeated exactly
_SILENCE = np.zeros(math.ceil(FADE_SAMPLES * _SPEED[1]))  # padding: it is faded instead of the burst


@dataclass(frozen=True, slots=True, eq=False)
class BurstPool:
    """Concatenated bursts, equally many of each kind.

    Attributes:
        audio: (N,) int16, each burst with its peak at full scale and a little silence before and after it.
        start: (K + 1,) int64 samples; burst k is ``audio[start[k] : start[k + 1]]``, sorted by kind.
        gain: (K,) float32, the factor that restores the level of each burst from ``burst_of_kind``.
    """

    audio: np.ndarray
    start: np.ndarray
    gain: np.ndarray

    @classmethod
    def make(cls, pauses: Pauses, count: int, cache: str | Path | None = None) -> "BurstPool":
        """Make ``count`` bursts of each kind, or read them from the folder ``cache``.

        Raises:
            InputError: if the cache is damaged.
        """

        def pool() -> dict[str, np.ndarray]:
            rng = np.random.default_rng(count)
            made = (burst_of_kind(rng, kind, pauses) for kind in range(KINDS) for _ in range(count))
            sounds = [np.concatenate([_SILENCE, sound, _SILENCE]) for sound in made]
            peaks = np.array([max(1e-9, float(np.abs(sound).max())) for sound in sounds])
            full = [np.rint(sound * (32767 / peak)).astype(np.int16) for sound, peak in zip(sounds, peaks, strict=True)]
            start = np.cumsum([0, *map(len, full)])
            return {"audio": np.concatenate(full), "start": start, "gain": (peaks * 32768 / 32767).astype(np.float32)}

        return cls(**cached(cache, f"bursts-{_LAYOUT}-{count}-{pauses.fingerprint()[:12]}", pool))

    def draw(
        self, rng: np.random.Generator, row: int, num_samples: int, rate_hz: float, shares: np.ndarray
    ) -> list[Note]:
        """Draw bursts on the only track of a row, ``rate_hz`` per second on average, as ``bursts`` does.

        Played from ``audio`` they have unit power, give or take some dB; puffs of air have more.
        """
        count, notes = len(self.gain) // KINDS, []
        for _ in range(rng.poisson(rate_hz * num_samples / SAMPLE_RATE)):
            chosen = drawn_kind(rng, shares) * count + int(rng.integers(count))
            first, stored = int(self.start[chosen]), int(self.start[chosen + 1] - self.start[chosen])
            gain = float(self.gain[chosen]) * 10 ** (LEVEL_SPREAD_DB * rng.normal() / 20)
            speed, at = log_uniform(rng, _SPEED), int(rng.integers(num_samples))
            length = min(round(stored / speed), num_samples - at)
            notes.append(Note(row, 0, first, stored, at, length, Delivery(gain, speed=speed)))
        return notes

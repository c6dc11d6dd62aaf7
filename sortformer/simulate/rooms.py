"""Impulse responses of shoebox rooms, computed once by the image-source method and cached in a file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sortformer.extras import require_extra
from sortformer.grid import SAMPLE_RATE
from sortformer.simulate.cache import cached

__all__ = ["ROOM_SAMPLES", "Rooms"]

ROOM_SAMPLES = 6400  # 0.4 s
_LEAD = 8  # samples kept before the direct sound
_HIGHEST_ORDER = 14  # of the image sources; the tail beyond them is shaped noise
_T60_S = (0.1, 0.8)


@dataclass(frozen=True, slots=True, eq=False)
class Rooms:
    """Rooms with one microphone and several talkers each.

    Attributes:
        responses: (R, P, ROOM_SAMPLES) float32 of unit energy. The peak of the first 50 ms is at sample 8, so that
            labels of the dry voices hold for the reverberant ones. It is the direct sound or, in one of seventeen,
            coinciding reflections, mostly 3 ms and at most 20 ms later.
        t60_s: (R,) float32 reverberation times.
    """

    responses: np.ndarray
    t60_s: np.ndarray

    @classmethod
    def make(cls, count: int, seed: int = 0, positions: int = 5, cache: str | Path | None = None) -> "Rooms":
        """Compute ``count`` rooms with pyroomacoustics (the extra ``train``), or read them from the folder ``cache``.

        Sides 3 to 9 m and 3 to 7 m, height 2.4 to 3.6 m, reverberation times 0.1 to 0.8 s, talkers at least 0.5 m away.

        Raises:
            InputError: if pyroomacoustics is needed and absent, or the cache is damaged.
        """

        def made() -> dict[str, np.ndarray]:
            rng = np.random.default_rng([seed, count, positions])
            t60_s = rng.uniform(*_T60_S, count).astype(np.float32)
            return {"responses": np.stack([_room(rng, float(t60), positions) for t60 in t60_s]), "t60_s": t60_s}

        return cls(**cached(cache, f"rooms-{count}x{positions}-seed{seed}", made))


def _room(rng: np.random.Generator, t60: float, positions: int) -> np.ndarray:
    """Return (positions, ROOM_SAMPLES) float32."""
    require_extra("room simulation", "train", "pyroomacoustics")
    import pyroomacoustics

    size = np.array([rng.uniform(3, 9), rng.uniform(3, 7), rng.uniform(2.4, 3.6)])
    absorption = _absorption(size, t60)
    room = pyroomacoustics.ShoeBox(
        size, fs=SAMPLE_RATE, materials=pyroomacoustics.Material(absorption), max_order=_HIGHEST_ORDER
    )
    centre = size * rng.uniform(0.3, 0.7, 3)
    microphone = np.array([centre[0], centre[1], rng.uniform(0.7, 1.3)])
    room.add_microphone(microphone)
    for _ in range(positions):
        room.add_source(_talker(rng, size, microphone))
    room.compute_rir()
    responses = room.rir[0]  # pyright: ignore[reportOptionalSubscript] (compute_rir has filled it)
    return np.stack([_finish(rng, np.asarray(responses[p]), t60) for p in range(positions)])


def _absorption(size: np.ndarray, t60: float) -> float:
    """Return the absorption of one material on all six walls, by Sabine's formula."""
    volume, area = size.prod(), 2 * (size[0] * size[1] + size[0] * size[2] + size[1] * size[2])
    return float(np.clip(0.161 * volume / (area * t60), 0.03, 0.98))


def _talker(rng: np.random.Generator, size: np.ndarray, microphone: np.ndarray) -> np.ndarray:
    height = rng.uniform(1.0, 1.8)
    while True:
        place = np.array([rng.uniform(0.3, size[0] - 0.3), rng.uniform(0.3, size[1] - 0.3), height])
        if np.linalg.norm(place - microphone) > 0.5:
            return place


def _finish(rng: np.random.Generator, response: np.ndarray, t60: float) -> np.ndarray:
    """Align to the peak, add a diffuse tail where the image sources thin out, fade, and normalise."""
    direct = int(np.argmax(np.abs(response)[: int(0.05 * SAMPLE_RATE)]))
    aligned = np.zeros(ROOM_SAMPLES)
    kept = response[max(0, direct - _LEAD) : max(0, direct - _LEAD) + ROOM_SAMPLES]
    aligned[: len(kept)] = kept
    decay = 10 ** (-3 * np.arange(ROOM_SAMPLES) / (t60 * SAMPLE_RATE))
    reference = slice(int(0.03 * SAMPLE_RATE), int(0.05 * SAMPLE_RATE))
    level = np.sqrt(np.mean((aligned[reference] / decay[reference]) ** 2))
    rise = np.clip((np.arange(ROOM_SAMPLES) / SAMPLE_RATE - 0.04) / 0.06, 0, 1)
    aligned += rise * level * decay * rng.normal(size=ROOM_SAMPLES)
    aligned[-800:] *= np.linspace(1, 0, 800)
    return (aligned / np.sqrt(np.sum(aligned**2))).astype(np.float32)

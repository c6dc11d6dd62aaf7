"""Sound events, laid out before they are rendered: so workers can draw conversations that another device renders."""

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

__all__ = ["FADE_SAMPLES", "Delivery", "Events", "Note", "noted", "played"]

FADE_SAMPLES = 80  # 5 ms, at either end of each sound
_FADE = np.linspace(0, 1, FADE_SAMPLES, dtype=np.float32)
_FULL_SCALE = 32768


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of a turn.

    Attributes:
        gain: factor of the amplitude.
        tilt: in (-1, 1), makes it duller (above 0) or brighter: 1 + tilt z^-1, with the power of white noise kept.
        speed: scales pitch and formants by speed, and the duration by 1 / speed.
    """

    gain: float = 1.0
    tilt: float = 0.0
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Note:
    """One sound on one track: ``stored`` samples of an array from ``source``, played from sample ``at`` of the track.

    It lasts ``length`` samples, which differs from ``stored`` if the speed is not 1 or the recording ends.
    """

    row: int
    path: int
    source: int
    stored: int
    at: int
    length: int
    delivery: Delivery


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Notes as (E,) arrays: int64, except ``speed`` and ``tilt`` (float64) and ``gain`` (float32)."""

    row: np.ndarray
    path: np.ndarray
    source: np.ndarray
    stored: np.ndarray
    at: np.ndarray
    length: np.ndarray
    speed: np.ndarray
    gain: np.ndarray
    tilt: np.ndarray

    def where(self, chosen: np.ndarray) -> "Events":
        """Return the events that are ``chosen``, (E,) bool."""
        return Events(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def occupied(self, rows: int, paths: int, blocks: int, block_samples: int) -> np.ndarray:
        """Return which blocks of the tracks hold sound, (rows, paths, blocks) bool."""
        occupied = np.zeros((rows, paths, blocks), dtype=bool)
        first, last = self.at // block_samples, (self.at + self.length - 1) // block_samples
        for row, path, begin, end in zip(self.row, self.path, first, last, strict=True):
            occupied[row, path, begin : end + 1] = True
        return occupied


def noted(notes: list[Note]) -> Events:
    """Convert notes to arrays, without those that are too short to fade in and out."""
    kept = [note for note in notes if note.length >= 2 * FADE_SAMPLES]
    places = np.array([(n.row, n.path, n.source, n.stored, n.at, n.length) for n in kept], dtype=np.int64)
    return Events(
        *places.reshape(-1, 6).T,
        speed=np.array([note.delivery.speed for note in kept], dtype=np.float64),
        gain=np.array([note.delivery.gain / _FULL_SCALE for note in kept], dtype=np.float32),
        tilt=np.array([note.delivery.tilt for note in kept], dtype=np.float64),
    )


def played(events: Events, audio: np.ndarray | Tensor, rows: int, paths: int, length: int) -> Tensor:
    """Render all events to tracks (rows, paths, length), float32, on the device of ``audio``.

    Args:
        audio: (N,) int16, the source of all events. An array is rendered event by event, a tensor all at once on its
            device; the two differ by rounding.
    """
    if isinstance(audio, np.ndarray):
        return torch.from_numpy(_one_by_one(events, audio, (rows, paths, length)))
    places = (events.row * paths + events.path) * length + events.at
    return _all_at_once(events, audio, rows * paths * length, places).view(rows, paths, length)


def _one_by_one(events: Events, audio: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    tracks = np.zeros(shape, dtype=np.float32)
    for event in range(len(events.row)):
        source, count, speed = events.source[event], events.length[event], float(events.speed[event])
        sound = audio[source : source + events.stored[event]]
        if speed != 1:
            sound = np.interp(np.arange(count) * speed, np.arange(len(sound)), sound)
        scaled = np.multiply(sound[:count], events.gain[event], dtype=np.float32)
        if tilt := float(events.tilt[event]):
            scaled[1:] += np.float32(tilt) * scaled[:-1]
            scaled *= np.float32((1 + tilt**2) ** -0.5)
        scaled[:FADE_SAMPLES] *= _FADE
        scaled[-FADE_SAMPLES:] *= _FADE[::-1]
        at = events.at[event]
        tracks[events.row[event], events.path[event], at : at + count] += scaled
    return tracks


def _all_at_once(events: Events, audio: Tensor, samples: int, places: np.ndarray) -> Tensor:
    """Return all tracks, concatenated to (samples,); events begin at ``places`` (E,) in them."""
    device, tracks = audio.device, torch.zeros(samples, device=audio.device)
    if len(events.row) == 0:
        return tracks

    def there(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)

    count = there(events.length)
    whose = torch.arange(len(events.row), device=device)
    event = torch.repeat_interleave(whose, count, output_size=int(events.length.sum()))
    number = torch.arange(len(event), device=device) - (count.cumsum(0) - count)[event]
    source, last, speed = there(events.source)[event], there(events.stored)[event] - 1, there(events.speed)[event]

    def sample(number: Tensor) -> Tensor:
        position = number * speed
        low = position.long().minimum(last)
        here, next_one = audio[source + low].float(), audio[source + (low + 1).minimum(last)].float()
        return torch.lerp(here, next_one, (position - low).float())

    tilt = there(events.tilt).float()
    tilted = sample(number) + tilt[event] * sample((number - 1).clamp(min=0)) * (number > 0)
    gain = there(events.gain) * torch.rsqrt(1 + tilt.square())
    fade = torch.minimum(number, count[event] - 1 - number).clamp(max=FADE_SAMPLES - 1) / (FADE_SAMPLES - 1)
    return tracks.index_add_(0, there(places)[event] + number, tilted * gain[event] * fade)

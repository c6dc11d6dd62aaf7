"""Where the voices of a batch are laid out in time, dry, with their own speech activity beside them."""

from dataclasses import dataclass

import numpy as np

from sortformer.grid import HOP_SAMPLES
from sortformer.simulate.voice_bank import VoiceBank

__all__ = ["Delivery", "Stage"]

_FADE = np.linspace(0, 1, 80, dtype=np.float32)  # 5 ms
_MARGIN = 3  # hops of the recording around a phrase that are heard but not labelled


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a turn is said.

    Attributes:
        gain: factor of the amplitude.
        tilt: in (-1, 1), makes it duller (above 0) or brighter: 1 + tilt z^-1, with the power of white noise kept.
        speed: it takes 1 / speed of the time, with pitch and formants speed times as high.
    """

    gain: float = 1.0
    tilt: float = 0.0
    speed: float = 1.0


_PLAIN = Delivery()


class Stage:
    """The dry tracks of a batch of conversations while they are being made.

    Attributes:
        tracks: (B, S + 1, length) float32; the last track of a row is its babble.
        activity: (B, S, H) bool at 10 ms.
    """

    def __init__(self, bank: VoiceBank, batch_size: int, num_slots: int, num_hops: int, length: int) -> None:
        self.tracks = np.zeros((batch_size, num_slots + 1, length), dtype=np.float32)
        self.activity = np.zeros((batch_size, num_slots, num_hops), dtype=bool)
        self.num_hops = num_hops
        self._bank = bank
        self._touched: list[tuple[int, int, int, int]] = []

    def play(self, row: int, slot: int, source: int, at: int, length: int, delivery: Delivery = _PLAIN) -> None:
        """Let a slot say ``length`` hops of the bank from hop ``source`` at hop ``at``, and note its speech."""
        heard = min(round(length / delivery.speed), self.num_hops - at)
        if heard <= 0:
            return
        own = self._bank.activity
        length = min(length, round(heard * delivery.speed))
        position = np.minimum((np.arange(heard) * delivery.speed).astype(np.int64), length - 1)
        self.activity[row, slot, at : at + heard] |= own[source + position]
        before = _MARGIN if source >= _MARGIN and at >= _MARGIN and not own[source - _MARGIN : source].any() else 0
        after = _MARGIN if not own[source + length : source + length + _MARGIN].any() else 0
        self._mix(row, slot, source - before, at - before, length + before + after, delivery)

    def murmur(self, row: int, source: int, at: int, length: int) -> None:
        """Add ``length`` hops of the bank to the babble of a row, as many as its recording lasts."""
        length = min(length, self.num_hops - at)
        if length > 0:
            self._mix(row, -1, source, at, length, _PLAIN)

    def occupied(self, block_samples: int) -> np.ndarray:
        """Return which blocks of the tracks hold sound, (B, S + 1, length // block_samples) bool."""
        rows, paths, length = self.tracks.shape
        occupied = np.zeros((rows, paths, length // block_samples), dtype=bool)
        for row, path, first, last in self._touched:
            occupied[row, path, first // block_samples : (last - 1) // block_samples + 1] = True
        return occupied

    def _mix(self, row: int, path: int, source: int, at: int, length: int, delivery: Delivery) -> None:
        sound = self._bank.audio[source * HOP_SAMPLES : (source + length) * HOP_SAMPLES]
        if delivery.speed != 1:
            position = np.arange(round(len(sound) / delivery.speed)) * delivery.speed
            sound = np.interp(position, np.arange(len(sound)), sound)
        first = at * HOP_SAMPLES
        sound = sound[: self.num_hops * HOP_SAMPLES - first]
        if len(sound) < 2 * len(_FADE):
            return
        scaled = np.multiply(sound, np.float32(delivery.gain / 32768), dtype=np.float32)
        if delivery.tilt:
            scaled[1:] += np.float32(delivery.tilt) * scaled[:-1]
            scaled *= np.float32((1 + delivery.tilt**2) ** -0.5)
        scaled[: len(_FADE)] *= _FADE
        scaled[-len(_FADE) :] *= _FADE[::-1]
        self.tracks[row, path, first : first + len(scaled)] += scaled
        self._touched.append((row, path, first, first + len(scaled)))

"""The layout of a batch's voices in time, with their speech activity."""

import numpy as np

from sortformer.grid import HOP_SAMPLES
from sortformer.simulate.events import Delivery, Note
from sortformer.simulate.voice_bank import VoiceBank

__all__ = ["Stage"]

_MARGIN = 3  # hops of the recording around a phrase that are played but not labelled
_PLAIN = Delivery()


class Stage:
    """The sounds of a batch of conversations, while they are being laid out.

    Attributes:
        notes: the dry sounds; path S of S slots is the babble of a row.
        activity: (B, S, H) bool at 10 ms.
    """

    def __init__(self, bank: VoiceBank, batch_size: int, num_slots: int, num_hops: int) -> None:
        self.notes: list[Note] = []
        self.activity = np.zeros((batch_size, num_slots, num_hops), dtype=bool)
        self.num_hops = num_hops
        self._bank = bank

    def play(self, row: int, slot: int, source: int, at: int, length: int, delivery: Delivery = _PLAIN) -> None:
        """Play ``length`` hops of the bank, from hop ``source``, in a slot from hop ``at``, and set its activity."""
        heard = min(round(length / delivery.speed), self.num_hops - at)
        if heard <= 0:
            return
        own = self._bank.activity
        length = min(length, round(heard * delivery.speed))
        position = np.minimum((np.arange(heard) * delivery.speed).astype(np.int64), length - 1)
        self.activity[row, slot, at : at + heard] |= own[source + position]
        lead = round(_MARGIN / delivery.speed)
        before = _MARGIN if source >= _MARGIN and at >= lead and not own[source - _MARGIN : source].any() else 0
        after = _MARGIN if not own[source + length : source + length + _MARGIN].any() else 0
        self._note(row, slot, source - before, at - (lead if before else 0), length + before + after, delivery)

    def murmur(self, row: int, source: int, at: int, length: int) -> None:
        """Play ``length`` hops of the bank in the babble of a row, up to the end of its recording."""
        self._note(row, self.activity.shape[1], source, at, length, _PLAIN)

    def _note(self, row: int, path: int, source: int, at: int, length: int, delivery: Delivery) -> None:
        # The margin after the last phrase of a bank may reach beyond its end.
        stored = min(length * HOP_SAMPLES, len(self._bank.audio) - source * HOP_SAMPLES)
        heard = min(round(stored / delivery.speed), (self.num_hops - at) * HOP_SAMPLES)
        self.notes.append(Note(row, path, source * HOP_SAMPLES, stored, at * HOP_SAMPLES, heard, delivery))

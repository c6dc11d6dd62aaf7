"""Conversations without audio: encoded steps of single voices in sequence, drawn anew for every training step."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from voices import SILENCE, STEP_S, Voices

__all__ = ["FADES_S", "Conversations", "compose", "timed", "turns"]

NEWCOMER = 0.25  # share of the turns that bring a new speaker, while there are any
TURN, LONG_TURN = (2, 8), (12, 36)  # in steps of 640 ms, like all durations here
PAUSE, LONG_PAUSE = (1, 2), (12, 50)
LONG_SHARE, PAUSE_SHARE = 0.1, 0.5
FADES_S = (3.0, 12.0, 50.0, 200.0)


@dataclass(frozen=True, slots=True)
class Conversations:
    """Embeddings (B, T, D), and the slot (B, T) of the speaker, in order of arrival, or ``SILENCE``."""

    emb: Tensor
    slot: Tensor

    def activity(self, slots: int) -> Tensor:
        """Return the activity (B, T, slots): 1 where the speaker of a slot speaks."""
        return (self.slot[..., None] == torch.arange(slots)).float()

    def absence(self) -> Tensor:
        """Return (B, T): for each step, how many steps ago its speaker had last spoken before this turn; 0 if never."""
        found = torch.zeros_like(self.slot)
        for row, gaps in zip(self.slot.tolist(), found, strict=True):
            heard: dict[int, int] = {}
            for at, slot in enumerate(row):
                fresh = at == 0 or row[at - 1] != slot
                gaps[at] = (at - heard.get(slot, at) if fresh else gaps[at - 1]) if slot != SILENCE else 0
                heard[slot] = at
        return found


def compose(voices: Voices, generator: np.random.Generator, rows: int, steps: int, slots: int) -> Conversations:
    """Return conversations of voices drawn at random."""
    slot = turns(generator, rows, steps, slots)
    people = np.stack([generator.permutation(len(voices.speech))[:slots] for _ in range(rows)])
    spoken = np.where(slot == SILENCE, SILENCE, np.take_along_axis(people, slot.clip(min=0), axis=1))
    return Conversations(timed(voices.compose(spoken, generator)), torch.from_numpy(slot))


def turns(generator: np.random.Generator, rows: int, steps: int, slots: int) -> np.ndarray:
    """Return the speaker of each step (B, T): two to ``slots`` speakers a row, numbered in order of arrival.

    Every tenth turn or pause is long, so that bounded memories forget.
    """
    found = np.full((rows, steps), SILENCE)
    for row in found:
        people, known, at, last = generator.integers(2, slots + 1), 0, 0, SILENCE
        while at < steps:
            others = [slot for slot in range(known) if slot != last]
            comes = known < people and (not others or generator.random() < NEWCOMER)
            last = known if comes else int(generator.choice(others))
            known += comes
            long, pause, long_pause = generator.random(3) < (LONG_SHARE, PAUSE_SHARE, LONG_SHARE)
            until = at + generator.integers(*(LONG_TURN if long else TURN), endpoint=True)
            row[at:until] = last
            at = until + pause * generator.integers(*(LONG_PAUSE if long_pause else PAUSE), endpoint=True)
    return found


def timed(emb: Tensor, first: int = 0) -> Tensor:
    """Append four channels that decay over 3 to 200 s to embeddings (B, T, D) that begin at step ``first``.

    Layers have no positions; with these a head can tell the beginning of a recording from later frames.
    """
    at = torch.arange(first, first + emb.shape[1])[:, None]
    return torch.cat((emb, 2 * torch.exp(-STEP_S * at / torch.tensor(FADES_S)).expand(len(emb), -1, -1)), dim=2)

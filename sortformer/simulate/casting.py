"""Casting: which voices speak in a conversation, and which audio of the bank each turn plays."""

from dataclasses import dataclass

import numpy as np

from sortformer.config.simulation import CastingConfig
from sortformer.simulate.voice_bank import VoiceBank

__all__ = ["Caster", "Piece", "VoiceTape"]

_LONGEST_INNER_PAUSE = 35  # hops; longer pauses of a recording are shortened
_NEW_PAUSE = (8, 30)  # hops; instead of those, and between phrases that are not consecutive
_SHORTEST_REST = 15  # hops; a shorter rest of a phrase is dropped


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment of the bank to play: ``length`` hops from hop ``source``, ``at`` hops after its turn begins."""

    source: int
    at: int
    length: int


class VoiceTape:
    """All phrases of one voice, its utterances in random order, played on from turn to turn in a loop."""

    def __init__(self, bank: VoiceBank, voice: int, rng: np.random.Generator) -> None:
        first, last = int(bank.voice_phrases[voice]), int(bank.voice_phrases[voice + 1])
        utterance = bank.phrase_utterance[first:last]
        rank = rng.permutation(int(utterance[-1] - utterance[0]) + 1)
        order = np.argsort(rank[utterance - utterance[0]], kind="stable")
        order = np.roll(order, -int(rng.integers(len(order))))
        self._start = bank.phrase_start[first:last][order]
        self._end = bank.phrase_end[first:last][order]
        self._phrase = 0
        self._position = int(self._start[0])
        self._rng = rng

    def read(self, length: int) -> list[Piece]:
        """Return the next ``length`` hops, pauses included; each piece is a phrase or a part of one."""
        pieces: list[Piece] = []
        at = 0
        while at < length:
            end = int(self._end[self._phrase])
            take = min(end - self._position, length - at)
            pieces.append(Piece(self._position, at, take))
            at += take
            self._position += take
            if end - self._position < _SHORTEST_REST:
                self._phrase = (self._phrase + 1) % len(self._start)
                self._position = int(self._start[self._phrase])
                pause = self._position - end
                natural = 0 < pause <= _LONGEST_INNER_PAUSE
                at += pause if natural else int(self._rng.integers(*_NEW_PAUSE))
        return pieces


class Caster:
    """Draws voices of different speakers, of mixed corpora and genders or, with given probabilities, of one."""

    def __init__(self, bank: VoiceBank, config: CastingConfig) -> None:
        self._config = config
        names = {speaker: index for index, speaker in enumerate(sorted({voice.speaker for voice in bank.voices}))}
        self._speaker = np.array([names[voice.speaker] for voice in bank.voices])
        self._corpus = np.unique([voice.corpus for voice in bank.voices], return_inverse=True)[1]
        known = {"f": 0, "m": 1}
        self._gender = np.array([known.get(voice.gender, -1) for voice in bank.voices])

    @property
    def num_speakers(self) -> int:
        """The number of speakers in the bank, not of their voices."""
        return int(self._speaker.max()) + 1

    def choose(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw ``count`` voices, (count,) int64, of different speakers; all corpora are equally likely."""
        allowed = np.ones(len(self._speaker), dtype=bool)
        if rng.random() < self._config.same_corpus_probability:
            allowed &= self._corpus == rng.integers(self._corpus.max() + 1)
        if rng.random() < self._config.same_gender_probability:
            same = allowed & (self._gender == rng.integers(2))
            allowed = same if same.any() else allowed
        if len(np.unique(self._speaker[allowed])) < count:
            allowed[:] = True
        chosen: list[int] = []
        for _ in range(count):
            left = np.unique(self._corpus[allowed])
            candidates = np.flatnonzero(allowed & (self._corpus == left[rng.integers(len(left))]))
            voice = int(candidates[rng.integers(len(candidates))])
            chosen.append(voice)
            allowed &= self._speaker != self._speaker[voice]
        return np.array(chosen, dtype=np.int64)

"""Who speaks in a conversation, and which stretch of the bank each turn says."""

from dataclasses import dataclass

import numpy as np

from sortformer.config.simulation import CastingConfig
from sortformer.simulate.voice_bank import VoiceBank

__all__ = ["Caster", "Piece", "VoiceTape"]

_LONGEST_INNER_PAUSE = 35  # hops; a longer pause of a reading is shortened
_NEW_PAUSE = (8, 30)  # hops, between phrases that did not follow one another
_SHORTEST_REST = 15  # hops; what is left of a phrase is dropped if it is shorter


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the bank to play: ``length`` hops from hop ``source``, ``at`` hops after its turn begins."""

    source: int
    at: int
    length: int


class VoiceTape:
    """All phrases of one voice in a random order of utterances, read on from turn to turn; then they begin again."""

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
        """Take the next ``length`` hops, pauses included; pieces hold one phrase or part of one each."""
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
    """Chooses voices of different speakers, mixing corpora and genders unless the draw says otherwise."""

    def __init__(self, bank: VoiceBank, config: CastingConfig) -> None:
        self._config = config
        names = {speaker: index for index, speaker in enumerate(sorted({voice.speaker for voice in bank.voices}))}
        self._speaker = np.array([names[voice.speaker] for voice in bank.voices])
        self._corpus = np.unique([voice.corpus for voice in bank.voices], return_inverse=True)[1]
        known = {"f": 0, "m": 1}
        self._gender = np.array([known.get(voice.gender, -1) for voice in bank.voices])

    @property
    def num_speakers(self) -> int:
        """Different speakers in the bank, whatever their speed."""
        return int(self._speaker.max()) + 1

    def choose(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw ``count`` voices, (count,) int64, of different speakers; corpora are drawn with equal chances."""
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

"""The sources of conversations: voices, real turn-taking, rooms, bursts, and real recordings."""

import hashlib
from dataclasses import dataclass

import numpy as np

from sortformer.config.data import DataConfig
from sortformer.config.model import ModelConfig
from sortformer.config.simulation import SimulationConfig
from sortformer.data.recordings import Recordings
from sortformer.errors import InputError
from sortformer.simulate import BurstPool, Pauses, Rooms, Simulator, TurnPatterns, VoiceBank

__all__ = ["Sources"]


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Everything that a recipe's ``[data]`` names, loaded; ``recordings`` are in its order."""

    bank: VoiceBank | None
    patterns: TurnPatterns | None
    rooms: Rooms | None
    recordings: tuple[Recordings, ...] = ()
    bursts: BurstPool | None = None

    @classmethod
    def load(cls, data: DataConfig, split: str = "train") -> "Sources":
        """Load what a recipe names; of another split than "train" all speakers are used, at speed and formants 1.

        Recordings are those for training, whatever the split.

        Raises:
            InputError: if something is missing or cannot be read.
        """
        recordings = tuple(Recordings.read(each.manifest) for each in data.recordings)
        if data.bank is None:
            return cls(None, None, None, recordings)
        speeds, formants = (data.speeds, data.formants) if split == "train" else ((1.0,), (1.0,))
        bank = VoiceBank.load(data.bank, split, speeds, data.cache, formants)
        if data.pool is not None and split == "train":
            bank = bank.pool(data.pool, data.pool_seed)
        patterns = TurnPatterns.from_rttm(data.turns, data.exclude) if data.turns else None
        rooms = Rooms.make(data.rooms, cache=data.cache) if data.rooms else None
        bursts = BurstPool.make(Pauses(bank), data.bursts, cache=data.cache) if data.bursts else None
        return cls(bank, patterns, rooms, recordings, bursts)

    @property
    def content(self) -> str:
        """A SHA-256 of the speech activity in voices, turns and recordings, which does not depend on their paths."""
        said, heard = list[object](), list[np.ndarray]()
        if self.bank is not None:
            said.append(self.bank.voices)
            heard += self.bank.activity, self.bank.phrase_start, self.bank.phrase_utterance
        if self.patterns is not None:
            heard += self.patterns.recordings
        for each in self.recordings:
            said += ((entry.id, entry.offset, entry.duration) for entry in each.entries)
            said += (reference.turns for reference in each.references)
            said.append(each.parts)
        digest = hashlib.sha256(repr(said).encode())
        for array in heard:
            digest.update(array.tobytes())
        return digest.hexdigest()

    def simulator(self, config: SimulationConfig, model: ModelConfig) -> Simulator:
        """Return a simulator of these sources, with targets for a model.

        Raises:
            InputError: if there is no bank, or it has too few voices.
        """
        if self.bank is None:
            raise InputError("conversations cannot be simulated without a bank of voices: name one in [data]")
        return Simulator(self.bank, config, self.patterns, self.rooms, model, self.bursts)

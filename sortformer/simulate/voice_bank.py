"""A bank of single voices in memory or mapped from a cache: their utterances, and the phrases in them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from sortformer.config.checks import factors
from sortformer.errors import InputError
from sortformer.simulate.bank_files import bank_files
from sortformer.simulate.cache import undamaged
from sortformer.simulate.voice import Voice

__all__ = ["VoiceBank"]


@dataclass(frozen=True, eq=False)  # with slots, early versions of Python 3.11 ignore __getstate__
class VoiceBank:
    """The utterances of many voices, concatenated, and the phrases of each voice.

    Every utterance starts and ends on a hop (10 ms), so that sample ``160 h`` belongs to hop ``h`` of the whole bank.

    Attributes:
        voices: the voices; an index into them is a voice's number.
        audio: (H * 160,) int16, active speech at ``SPEECH_RMS`` of full scale.
        activity: (H,) bool, hops with speech.
        utterance_start, utterance_end: (U,) int64 hops.
        utterance_voice: (U,) int64, ascending.
        phrase_start, phrase_end: (P,) int64 hops; speech without a pause of a quarter of a second.
        phrase_utterance: (P,) int64, ascending.
        voice_phrases: (V + 1,) int64; the phrases of voice v are ``voice_phrases[v]:voice_phrases[v + 1]``.
    """

    voices: tuple[Voice, ...]
    audio: np.ndarray
    activity: np.ndarray
    utterance_start: np.ndarray
    utterance_end: np.ndarray
    utterance_voice: np.ndarray
    phrase_start: np.ndarray
    phrase_end: np.ndarray
    phrase_utterance: np.ndarray
    voice_phrases: np.ndarray

    @classmethod
    def load(
        cls,
        folder: str | Path,
        split: str = "train",
        speeds: Sequence[float] = (0.9, 1.0, 1.1),
        cache: str | Path | None = None,
        formants: Sequence[float] = (1.0,),
    ) -> "VoiceBank":
        """Read a folder with ``segments.tsv`` and the recordings it names.

        Args:
            folder: holds ``segments.tsv`` (tab-separated: file, speaker, split, gender, start_s, end_s).
            split: the value of the column ``split`` to select.
            speeds: each makes voices of its own; above 1 is faster and higher.
            cache: a folder for the decoded bank. Later loads are immediate, even if the recordings are gone; if one has
                changed, the bank is made again. None: in memory.
            formants: each makes voices of its own at each speed; above 1 formants are higher, at the same pitch.

        Raises:
            ConfigError: if speeds or formants are none, or not all positive.
            InputError: if the list is absent or malformed, a recording cannot be read, the split has no recordings, a
                speaker has no speech, or the cache is damaged.
        """
        factors("a voice bank", speeds=speeds, formants=formants)
        with bank_files(Path(folder), split, speeds, formants, cache) as place, undamaged(place):
            voices = tuple(Voice(**voice) for voice in json.loads((place / "voices.json").read_text("utf-8")))
            audio = np.load(place / "audio.npy", mmap_mode=None if cache is None else "r")
            with (place / "index.npz").open("rb") as file, np.load(file) as index:
                return cls(voices=voices, audio=audio, **index)

    def pool(self, num_speakers: int, seed: int = 0) -> "VoiceBank":
        """Return a bank of ``num_speakers`` speakers, with all their voices; the audio is shared, not copied.

        With one seed, a smaller pool is a subset of a larger one, so that the value of more speakers can be measured.

        Raises:
            InputError: if the bank has fewer speakers.
        """
        speakers = sorted({voice.speaker for voice in self.voices})
        if not 1 <= num_speakers <= len(speakers):
            raise InputError(f"a pool of {num_speakers} speakers cannot be drawn from a bank of {len(speakers)}")
        chosen = {speakers[index] for index in np.random.default_rng(seed).permutation(len(speakers))[:num_speakers]}
        voices = np.array([voice.speaker in chosen for voice in self.voices])
        utterances = voices[self.utterance_voice]
        phrases = utterances[self.phrase_utterance]
        return replace(
            self,
            voices=tuple(voice for voice in self.voices if voice.speaker in chosen),
            utterance_start=self.utterance_start[utterances],
            utterance_end=self.utterance_end[utterances],
            utterance_voice=(np.cumsum(voices) - 1)[self.utterance_voice[utterances]],
            phrase_start=self.phrase_start[phrases],
            phrase_end=self.phrase_end[phrases],
            phrase_utterance=(np.cumsum(utterances) - 1)[self.phrase_utterance[phrases]],
            voice_phrases=np.concatenate([[0], np.cumsum(np.diff(self.voice_phrases)[voices])]),
        )

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        if isinstance(self.audio, np.memmap):  # else each process that is not forked would get a copy of all samples
            state["audio"] = self.audio.filename
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if not isinstance(state["audio"], np.ndarray):
            state = state | {"audio": np.load(state["audio"], mmap_mode="r")}
        for name, value in state.items():
            object.__setattr__(self, name, value)

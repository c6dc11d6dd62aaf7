"""Measure how often stored voices are named correctly, and how often strangers get their names.

python recipes/benchmark/voices.py BANK_FOLDER CACHE_FOLDER

The voices are the bank's dev voices with enough speech: 10 s of each are stored. Queries are clips of 5 s of other
utterances, and conversations of all dev voices, in which those with too little speech to be stored are strangers.
"""

import argparse
from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sortformer import Diarizer, VoiceStore
from sortformer.estimates import Embeddings
from sortformer.grid import SAMPLE_RATE, FrameGrid
from sortformer.simulate import Conversations, Rooms, VoiceBank, dev_set
from sortformer.targets import activity

STORED_S, ASKED_S, ASKED = 10.0, 5.0, 6


@dataclass(frozen=True, eq=False)
class Remembering(Diarizer):
    """A diarizer that caches the embeddings of each clip, for all stores."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", {})

    def embeddings(self, audio, **how) -> Embeddings:
        if id(audio) not in self.found:
            self.found[id(audio)] = super().embeddings(audio, **how), audio  # kept, so that its id is not reused
        return self.found[id(audio)][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--draws", type=int, default=5, help="choices of the voices that are stored")
    parser.add_argument("--count", type=int, default=20, help="conversations of each kind and number of speakers")
    arguments = parser.parse_args()
    loaded = Diarizer.load(arguments.model, "cpu")
    diarizer = Remembering(loaded.model, loaded.postprocess, loaded.name)
    bank = VoiceBank.load(arguments.bank, "dev", (1.0,), arguments.cache)
    clips = {voice.speaker: found for number, voice in enumerate(bank.voices) if (found := cut(bank, number))}
    noisy = {speaker: [found[0], *map(in_noise, found[1:])] for speaker, found in clips.items()}

    print(f"{len(clips)} voices, {sum(len(found) - 1 for found in clips.values())} clips asked for; percent")
    print("asked  stored  confidence   right  wrong  not named   strangers named")
    for label, asked in (("clean", clips), ("noise", noisy)):
        for count in (1, 10, len(clips)):
            draws = 1 if count == len(clips) else arguments.draws
            stores = [store_of(diarizer, clips, count, seed) for seed in range(draws)]
            for confidence in (0.0, 0.5, 0.8):
                right, wrong, unnamed, strangers = np.mean([ask(each, asked, confidence) for each in stores], axis=0)
                print(
                    f"{label}  {count:6d}  {confidence:10.1f}  {100 * right:6.1f} {100 * wrong:6.1f}"
                    f"  {100 * unnamed:9.1f}  {100 * strangers:16.1f}"
                )

    print("\nconversations of 30 s, all of the above stored; percent of the time in which one voice speaks")
    print("kind   speakers   lam   stored voice: right  wrong  not named   stranger named")
    store = store_of(diarizer, clips, len(clips), 0)
    rooms = Rooms.make(50, seed=1, cache=arguments.cache)
    unheard = without_stored(bank, clips)
    for kind, speakers in (("near", 2), ("near", 3), ("rooms", 2)):
        drawn = dev_set(unheard, kind, speakers, arguments.count, 30.0, 11, rooms)
        waves, voices = list(drawn.wave.numpy()), [voice.speaker for voice in bank.voices]
        for lam in (0.0, 0.25, 0.5):
            right, wrong, unnamed, strangers = converse(store, waves, drawn, voices, lam)
            print(
                f"{kind:5}  {speakers:8d}  {lam:4.2f}  {100 * right:19.1f} {100 * wrong:6.1f}"
                f"  {100 * unnamed:9.1f}  {100 * strangers:15.1f}"
            )


def cut(bank: VoiceBank, number: int) -> list[np.ndarray]:
    """Return the clip to store and the queries, of different utterances; none for voices with too little speech."""
    clips, taken = [], np.zeros(0, np.float32)
    for utterance in np.flatnonzero(bank.utterance_voice == number):
        start, end = bank.utterance_start[utterance] * 160, bank.utterance_end[utterance] * 160
        taken = np.append(taken, bank.audio[start:end].astype(np.float32) / 32768)
        wanted = round((ASKED_S if clips else STORED_S) * SAMPLE_RATE)
        if len(taken) >= wanted:
            clips, taken = [*clips, taken[:wanted]], taken[:0]
    return clips[: ASKED + 1] if len(clips) > ASKED else []


def in_noise(clip: np.ndarray) -> np.ndarray:
    """Return a clip in white noise, 10 dB below the clip's mean power."""
    noise = np.random.default_rng(0).standard_normal(len(clip)).astype(np.float32)
    return clip + noise * np.sqrt(np.mean(clip**2) / 10)


def without_stored(bank: VoiceBank, clips: Container[str]) -> VoiceBank:
    """Return the bank without stored utterances: those that begin in the first 10 s of speech of a stored voice."""
    stored = np.zeros(len(bank.utterance_voice), bool)
    for number, voice in enumerate(bank.voices):
        if voice.speaker in clips:
            own = np.flatnonzero(bank.utterance_voice == number)
            said_s = np.cumsum(bank.utterance_end[own] - bank.utterance_start[own]) / 100
            stored[own[: 1 + np.searchsorted(said_s, STORED_S)]] = True
    keep = ~stored[bank.phrase_utterance]
    counts = np.bincount(bank.utterance_voice[bank.phrase_utterance[keep]], minlength=len(bank.voices))
    return replace(
        bank,
        phrase_start=bank.phrase_start[keep],
        phrase_end=bank.phrase_end[keep],
        phrase_utterance=bank.phrase_utterance[keep],
        voice_phrases=np.concatenate([[0], np.cumsum(counts)]),
    )


def store_of(diarizer: Diarizer, clips: dict, count: int, seed: int) -> VoiceStore:
    """Return a store of ``count`` random voices."""
    store = VoiceStore(diarizer)
    for speaker in np.random.default_rng(seed).permutation(sorted(clips)).tolist()[:count]:
        store = store.add(speaker, clips[speaker][0], sample_rate=SAMPLE_RATE)
    return store


def ask(store: VoiceStore, asked: dict, confidence: float) -> tuple[float, float, float, float]:
    """Return the shares of stored voices' clips with the right name, a wrong one and none, and of named strangers'."""
    said = [(answer(store, clip, confidence), name) for name, clips in asked.items() for clip in clips[1:]]
    return shares(said, store)


def shares(said: list[tuple[str | None, str]], store: VoiceStore) -> tuple[float, float, float, float]:
    """Return the shares of ``ask`` from pairs of answer and truth."""
    known = [(answer, truth) for answer, truth in said if truth in store.names]
    others = [answer for answer, truth in said if truth not in store.names]
    right = np.mean([answer == truth for answer, truth in known])
    wrong = np.mean([answer not in (None, truth) for answer, truth in known])
    unnamed = np.mean([answer is None for answer, _ in known])
    strangers = np.mean([answer is not None for answer in others]) if others else np.nan
    return float(right), float(wrong), float(unnamed), float(strangers)


def converse(
    store: VoiceStore, waves: list[np.ndarray], drawn: Conversations, voices: list[str], lam: float
) -> tuple[float, ...]:
    """Return the shares of ``ask`` for frames of a single voice; right if any of the speakers found has the name."""
    said = []
    for wave, active, numbers in zip(waves, drawn.activity.numpy(), drawn.voice.tolist(), strict=True):
        found = store.diarize(wave, lam=lam, sample_rate=SAMPLE_RATE)
        here, names = activity(found.turns, len(active), max(1, len(found.speakers)), FrameGrid())
        for frame in np.flatnonzero(active.sum(axis=1) == 1):
            truth = voices[numbers[active[frame].argmax()]]
            heard = [names[slot] for slot in np.flatnonzero(here[frame]) if names[slot] in store.names]
            said.append((truth if truth in heard else next(iter(heard), None), truth))
    return shares(said, store)


def answer(store: VoiceStore, clip: np.ndarray, confidence: float) -> str | None:
    """Return the name of the speaker who speaks most, None without speech or for a stranger."""
    found = store.diarize(clip, confidence=confidence, sample_rate=SAMPLE_RATE)
    spoken = {name: sum(turn.duration for turn in found if turn.speaker == name) for name in found.speakers}
    most = max(spoken, key=lambda name: spoken[name], default=None)
    return most if most in store.names else None


if __name__ == "__main__":
    main()

"""Does a returning speaker get the slot back? And is the memory of an endless stream bounded?

python returning.py BANK_FOLDER OUT.json [--hours 10] [--preset 30s] [--no-cache] [--gaps 10 60 300 1200]
    [--cache CACHE_FOLDER] [--model MODEL]

Streams hours of simulated conversation of four unseen voices of one corpus. Once all have spoken, one of them at a
time falls silent, for 10 s, 1, 5 or 20 minutes, while the others go on, and then returns: the slot is kept if, over
that turn, the speaker's slot of the opening has the highest mean probability. Writes the outcome of each return, and
the time and peak memory of every ten minutes of the stream.
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from sortformer import Diarizer
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.grid import SAMPLE_RATE, FrameGrid
from sortformer.simulate import VoiceBank

OPENING_S = 180.0
RETURN_S = 8.0
BETWEEN_S = 30.0
PAUSE_S = (0.2, 0.8)
TURN_S = (3.0, 10.0)
NOISE_DB = -35.0  # of the noise relative to the voices
SPEAKERS = 4

Turn = tuple[int, float, float | None]
"""Speaker, seconds of speech, and the silence before it where it is a return."""


def forgetful(config: StreamConfig) -> StreamConfig:
    """Return the configuration without memory of speakers beyond the FIFO: no speaker cache, no voice embeddings."""
    return replace(config, speaker_cache=SpeakerCacheConfig(frames=0), voice_frames=0)


def script(rng: np.random.Generator, seconds: float, gaps_s: Sequence[float]) -> Iterator[Turn]:
    """Yield at least ``seconds`` of turns, in which one speaker at a time is silent for each of ``gaps_s``."""

    def talk(among: list[int], until: float) -> Iterator[Turn]:
        nonlocal now
        last = -1
        while now < until:
            last = int(rng.choice([speaker for speaker in among if speaker != last]))
            length = float(rng.uniform(*TURN_S))
            now += length + sum(PAUSE_S) / 2
            yield last, length, None

    now = 0.0
    everybody = list(range(SPEAKERS))
    yield from talk(everybody, OPENING_S)
    while now < seconds:
        for gap in rng.permutation(gaps_s):
            away = int(rng.integers(SPEAKERS))
            yield away, RETURN_S, None  # the last word before the silence
            now += RETURN_S
            yield from talk([speaker for speaker in everybody if speaker != away], now + gap)
            yield away, RETURN_S, float(gap)
            now += RETURN_S
            yield from talk(everybody, now + BETWEEN_S)


def voices(bank: VoiceBank, rng: np.random.Generator) -> list[int]:
    """Choose the two voices of each gender with the most phrases, all of one corpus."""
    phrases = np.diff(bank.voice_phrases)
    corpus = bank.voices[int(phrases.argmax())].corpus
    chosen: list[int] = []
    for gender in ("f", "m"):
        of_gender = [v for v, voice in enumerate(bank.voices) if voice.corpus == corpus and voice.gender == gender]
        chosen += sorted(of_gender, key=lambda v: -phrases[v])[: SPEAKERS // 2]
    if len(chosen) < SPEAKERS:
        raise SystemExit(f"the bank has fewer than {SPEAKERS // 2} voices of each gender in the corpus {corpus}")
    return rng.permutation(chosen).tolist()


def speech(bank: VoiceBank, voice: int, seconds: float, rng: np.random.Generator) -> np.ndarray:
    """Return at least ``seconds`` of a voice: phrases, each followed by a quarter of a second of silence."""
    first, last = bank.voice_phrases[voice : voice + 2]
    hop = FrameGrid().hop_samples
    parts: list[np.ndarray] = []
    while sum(map(len, parts)) < seconds * SAMPLE_RATE:
        phrase = int(rng.integers(first, last))
        cut = bank.audio[bank.phrase_start[phrase] * hop : bank.phrase_end[phrase] * hop]
        parts += [cut.astype(np.float32) / 32768, np.zeros(SAMPLE_RATE // 4, np.float32)]
    return np.concatenate(parts)


class Ledger:
    """The turns of the script so far, and the slots in which the model detected them."""

    def __init__(self, slots: int) -> None:
        self.opening = np.zeros((SPEAKERS, slots))
        self.slot_of: np.ndarray | None = None
        self.pending: list[tuple[int, int, int, float | None]] = []
        self.probs = np.zeros((0, slots), np.float32)
        self.first = 0
        self.returns: list[dict[str, float | bool]] = []

    def hear(self, probs: np.ndarray) -> None:
        """Append final frames (t, S), and evaluate every turn that they complete."""
        self.probs = np.concatenate([self.probs, probs])
        while self.pending and self.pending[0][2] <= self.first + len(self.probs):
            speaker, start, end, gap = self.pending.pop(0)
            mean = self.probs[start - self.first : end - self.first].mean(axis=0)
            if end * FrameGrid().step_s < OPENING_S:
                self.opening[speaker] += mean
            elif gap is not None:
                if self.slot_of is None:
                    self.slot_of = linear_sum_assignment(-self.opening)[1]
                kept = bool(mean.argmax() == self.slot_of[speaker])
                self.returns.append({"gap_s": gap, "kept": kept, "heard": bool(mean.max() > 0.5)})
            drop = end - self.first
            self.probs, self.first = self.probs[drop:], end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--hours", type=float, default=10.0)
    parser.add_argument("--preset", default="30s")
    parser.add_argument("--no-cache", action="store_true", help="remember the FIFO only, and no speakers")
    parser.add_argument("--gaps", type=float, nargs="+", default=[10, 60, 300, 1200], help="seconds of silence")
    parser.add_argument("--cache", type=Path, help="folder of the decoded bank")
    parser.add_argument("--model", help="the one in the package if not given")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    bank = VoiceBank.load(options.bank, "dev", (1.0,), options.cache)
    cast = voices(bank, rng)
    diarizer = Diarizer.load(options.model)
    config = diarizer.stream(options.preset).config
    if options.no_cache:
        config = forgetful(config)
    session = diarizer.stream(config)
    ledger, grid = Ledger(session.num_slots), FrameGrid()
    samples, minutes, started = 0, [], time.perf_counter()
    loud = np.float32(0.05 * 10 ** (NOISE_DB / 20))
    for speaker, length, gap in script(rng, 3600 * options.hours, options.gaps):
        voice = speech(bank, cast[speaker], length, rng)
        pause = np.zeros(round(rng.uniform(*PAUSE_S) * SAMPLE_RATE), np.float32)
        start = grid.output_frames(samples)
        samples += len(voice)
        ledger.pending.append((speaker, start, max(start + 1, grid.output_frames(samples) - 1), gap))
        samples += len(pause)
        block = np.concatenate([voice, pause])
        block += loud * rng.standard_normal(len(block), dtype=np.float32)
        ledger.hear(session.push(block).probs)
        while samples >= 600 * SAMPLE_RATE * (len(minutes) + 1):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            seconds = time.perf_counter() - started
            minutes.append({"minute": 10 * (len(minutes) + 1), "seconds": round(seconds, 1), "peak_mib": round(peak)})
            print(minutes[-1], flush=True)
    settings = {name: getattr(options, name) for name in ("preset", "hours", "seed", "gaps")}
    settings |= {"cache": not options.no_cache, "slots": session.num_slots}
    options.out.write_text(json.dumps({**settings, "minutes": minutes, "returns": ledger.returns}) + "\n")
    print("\n| silence | returns | heard | slot kept |\n|---:|---:|---:|---:|")
    for gap in options.gaps:
        found = [event for event in ledger.returns if event["gap_s"] == gap]
        if found:
            heard, kept = (np.mean([event[key] for event in found]) for key in ("heard", "kept"))
            print(f"| {gap:g} s | {len(found)} | {heard:.0%} | {kept:.0%} |")


if __name__ == "__main__":
    main()

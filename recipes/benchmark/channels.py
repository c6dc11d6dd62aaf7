"""DER of calls with one side per channel: by voice, from the mean of both channels, and with one speaker per channel.

    python channels.py BANK CACHE [--count N] [--seed N] [--model MODEL]

Simulated conversations of two dev voices, each rendered into its own channel, with its own noise; each channel has a
leak of the other one, attenuated and delayed. Protocol full: no collar, overlap scored, whole recordings.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from sortformer import Diarizer, Turn
from sortformer.grid import SAMPLE_RATE
from sortformer.metrics.der import der
from sortformer.simulate import Simulator, VoiceBank
from sortformer.simulate.dev_set import dev_simulator, turns_of

LEAKS = ((None, 0), (-35, 50), (-30, 100), (-25, 50), (-25, 200), (-25, 250), (-20, 50), (-15, 10), (-10, 10))  # dB, ms
DURATION_S = 60.0


def conversation(simulator: Simulator, generator: torch.Generator) -> tuple[np.ndarray, tuple[Turn, ...]]:
    """Simulate a conversation of two speakers: a channel for each, (N, 2), and the turns of both."""
    script = simulator.script(generator, 1, DURATION_S)
    heard = script.events.path
    speakers = np.unique(heard[heard < script.voice.shape[1]])  # paths from there on are babble
    if len(speakers) < 2:
        return conversation(simulator, generator)
    sides = []
    for speaker in speakers:
        only = replace(script, events=script.events.where(heard == speaker))
        sides.append(simulator.render(only).wave[0].numpy())
    return np.stack(sides, axis=1), turns_of(script.activity[0])


def leaking(sides: np.ndarray, leak_db: int | None, delay_ms: int) -> np.ndarray:
    """Return channels (N, 2) with a leak of the other one in each."""
    if leak_db is None:
        return sides
    delay = delay_ms * SAMPLE_RATE // 1000
    late = np.pad(sides, ((delay, 0), (0, 0)))[: len(sides), ::-1]
    return np.clip(sides + np.float32(10 ** (leak_db / 20)) * late, -1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=11007)
    parser.add_argument("--model")
    arguments = parser.parse_args()
    diarizer, bank = Diarizer.load(arguments.model), VoiceBank.load(arguments.bank, "dev", (1.0,), arguments.cache)
    for kind in ("near", "calls"):
        simulator, generator = dev_simulator(bank, kind, 2), torch.Generator().manual_seed(arguments.seed)
        drawn = [conversation(simulator, generator) for _ in range(arguments.count)]
        for leak_db, delay_ms in LEAKS:
            errors = np.zeros(3)  # by voice, by channel, and the speech of both
            for sides, truth in drawn:
                heard, region = leaking(sides, leak_db, delay_ms), [(0.0, DURATION_S)]
                whole = der(truth, diarizer(heard, sample_rate=SAMPLE_RATE).turns, region)
                apart = der(truth, diarizer(heard, sample_rate=SAMPLE_RATE, channel="each").turns, region)
                errors += whole.errors, apart.errors, whole.total
            leak = "no leak" if leak_db is None else f"{leak_db} dB, {delay_ms} ms late"
            by_voice, by_channel = 100 * errors[:2] / errors[2]
            print(f"{kind:6} {leak:20} by voice {by_voice:5.1f}  a speaker a channel {by_channel:5.1f}", flush=True)


if __name__ == "__main__":
    main()
